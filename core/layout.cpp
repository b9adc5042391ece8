// SPDX-License-Identifier: Apache-2.0

#include "core/layout.hpp"

#include "core/round_up.hpp"
#include "core/xxh3.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kvtide::core {

namespace {

error invalid(std::string text) {
  return {ec::invalid_options, std::move(text)};
}

/// @returns an empty string if all is well
std::string group_fault(const options& opts, const group_options& group) {
  if (group.tokens_per_block < 1)
    return "tokens_per_block is " + std::to_string(group.tokens_per_block)
         + "; it must be at least 1.";
  if (group.sliding_window_tokens < 0)
    return "sliding_window_tokens is "
         + std::to_string(group.sliding_window_tokens)
         + "; it must be 0 (full attention) or a positive width.";
  const auto chunk
    = token_count{group.tokens_per_block} * opts.blocks_per_chunk;
  if (chunk > max_tokens)
    return "a chunk has " + std::to_string(chunk)
         + " tokens (tokens_per_block times blocks_per_chunk); the longest "
           "request has "
         + std::to_string(max_tokens) + ".";
  if (chunk % opts.tokens_per_hash != 0)
    return "a chunk has " + std::to_string(chunk)
         + " tokens (tokens_per_block times blocks_per_chunk); it must be a "
           "multiple of tokens_per_hash, which is "
         + std::to_string(opts.tokens_per_hash) + ".";
  return {};
}

template <class Enum>
bool beyond(Enum value, Enum last) {
  return static_cast<int>(value) > static_cast<int>(last);
}

/// Numbers that came from elsewhere and name nothing.
/// @returns an empty string if all is well
std::string choice_fault(const options& opts) {
  const auto unknown = [](const char* name) {
    return std::string{name} + " has a value that does not exist.";
  };
  if (beyond(opts.rules, rule_set::safe))
    return unknown("rules");
  if (beyond(opts.policy, eviction_policy::arc))
    return unknown("policy");
  if (beyond(opts.delivery, plan_delivery::by_engine))
    return unknown("delivery");
  if (beyond(opts.device, device_kind::cuda))
    return unknown("device");
  if (beyond(opts.order_checks, order_checks::fatal))
    return unknown("order_checks");
  return {};
}

/// @returns an empty string if all is well
std::string number_fault(const options& opts) {
  if (opts.groups.empty())
    return "groups is empty; name at least one KV group.";
  if (opts.blocks_per_chunk < 1)
    return "blocks_per_chunk is " + std::to_string(opts.blocks_per_chunk)
         + "; it must be at least 1.";
  if (opts.tokens_per_hash < 1)
    return "tokens_per_hash is " + std::to_string(opts.tokens_per_hash)
         + "; it must be at least 1.";
  if (opts.ranks < 1 || opts.ranks > 64)
    return "ranks is " + std::to_string(opts.ranks) + "; it must be 1 to 64.";
  if (opts.store_threshold < 1)
    return "store_threshold is 0; it must be at least 1, which turns it off.";
  if (opts.promise_steps < 1)
    return "promise_steps is 0; it must be at least 1.";
  if (opts.max_store_jobs < 1)
    return "max_store_jobs is 0; it must be at least 1.";
  if (opts.actor_threads < 1 || opts.actor_threads > 256)
    return "actor_threads is " + std::to_string(opts.actor_threads)
         + "; it must be 1 to 256.";
  if (opts.job_deadline.count() < 1 || opts.job_deadline > longest_wait)
    return "job_deadline is " + std::to_string(opts.job_deadline.count())
         + " ms; it must be at least 1 ms and at most a year.";
  if (opts.idle_delay.count() < 0 || opts.idle_delay > longest_wait)
    return "idle_delay is " + std::to_string(opts.idle_delay.count())
         + " ms; it must be from 0 ms to a year.";
  if (opts.copy_latency.count() < 0 || opts.copy_latency > longest_wait)
    return "copy_latency is " + std::to_string(opts.copy_latency.count())
         + " us; it must be from 0 us to a year.";
  return {};
}

group_layout describe(const options& opts, const group_options& group) {
  auto out = group_layout{};
  out.block_tokens = group.tokens_per_block;
  out.chunk_tokens = out.block_tokens * opts.blocks_per_chunk;
  out.hashes_per_chunk
    = static_cast<std::size_t>(out.chunk_tokens / opts.tokens_per_hash);
  out.window_tokens = group.sliding_window_tokens;
  out.window_chunks = units_for(out.window_tokens, out.chunk_tokens);
  out.draft = group.draft;
  return out;
}

/// The chunk size of the full attention groups if all have the same one, else
/// zero.
token_count common_full_chunk(const layout& shape) {
  auto out = token_count{0};
  for (const auto& group : shape.groups) {
    if (group.sliding())
      continue;
    if (out != 0 && out != group.chunk_tokens)
      return 0;
    out = group.chunk_tokens;
  }
  return out;
}

void set_segments(layout& shape) {
  const auto full = common_full_chunk(shape);
  for (auto& group : shape.groups) {
    if (!group.sliding() || full <= group.chunk_tokens)
      continue;
    const auto chunks = static_cast<std::size_t>(full / group.chunk_tokens);
    if (group.window_chunks < chunks)
      group.segment = chunks;
  }
}

void set_search_order(layout& shape) {
  const auto& groups = shape.groups;
  for (group_id group = 0; group < groups.size(); ++group)
    shape.search_order.push_back(group);
  std::stable_sort(shape.search_order.begin(), shape.search_order.end(),
                   [&](group_id x, group_id y) {
                     if (groups[x].sliding() != groups[y].sliding())
                       return !groups[x].sliding();
                     return groups[x].window_chunks > groups[y].window_chunks;
                   });
}

} // namespace

result<layout> make_layout(const options& opts) {
  for (auto* fault_in : {choice_fault, number_fault})
    if (auto fault = fault_in(opts); !fault.empty())
      return invalid(std::move(fault));
  auto out = layout{};
  out.blocks_per_chunk = static_cast<std::size_t>(opts.blocks_per_chunk);
  out.hash_tokens = opts.tokens_per_hash;
  out.model
    = XXH3_64bits(opts.model_fingerprint.data(), opts.model_fingerprint.size());
  for (std::size_t at = 0; at < opts.groups.size(); ++at) {
    const auto& group = opts.groups[at];
    if (auto fault = group_fault(opts, group); !fault.empty())
      return invalid("Group " + std::to_string(at) + ": " + fault);
    out.groups.push_back(describe(opts, group));
    out.any_sliding = out.any_sliding || out.groups.back().sliding();
  }
  set_segments(out);
  set_search_order(out);
  return out;
}

} // namespace kvtide::core
