// SPDX-License-Identifier: Apache-2.0

#include "bench/load.hpp"

#include <utility>

namespace kvtide::bench {

namespace {

/// No two requests share a chunk.
prefix_hash hash_of(request_id id, token_count block) {
  const std::uint64_t name[] = {id, static_cast<std::uint64_t>(block)};
  return {name, sizeof(name)};
}

extend_keys keys_of(request_id id, token_count first, token_count end) {
  auto out = extend_keys{};
  out.request = id;
  out.first = static_cast<std::uint64_t>(first);
  for (auto block = first; block < end; ++block)
    out.hashes.push_back(hash_of(id, block));
  return out;
}

} // namespace

options options_of(const load_config& config) {
  auto out = options{};
  out.blocks_per_chunk = static_cast<std::int32_t>(config.blocks_per_chunk);
  if (config.sliding) {
    auto& group = out.groups.emplace_back();
    group.sliding_window_tokens = static_cast<std::int32_t>(config.window);
  }
  out.ranks = config.ranks;
  out.rules = config.rules;
  out.host_bytes = 1; // The ranks have `pool_slots`.
  return out;
}

engine_load::engine_load(const load_config& config) : config_(config) {
  requests_.reserve(config.requests);
}

engine_load::arrival engine_load::arrive() {
  const auto chunk = block_tokens * config_.blocks_per_chunk;
  const auto id = static_cast<request_id>(requests_.size() + 1);
  const auto place = static_cast<token_count>(requests_.size());
  const auto tokens
    = config_.context
    + place * chunk / static_cast<token_count>(config_.requests) % chunk;
  requests_.emplace_back();
  auto out = arrival{};
  out.add.request = id;
  out.add.prompt_tokens = out.add.known_tokens = tokens;
  out.keys = keys_of(id, 0, tokens / block_tokens);
  out.prefill.step = ++last_step_;
  out.prefill.rows.push_back(schedule(id, tokens, row_kind::fresh));
  return out;
}

engine_load::decoding engine_load::decode() {
  auto out = decoding{};
  out.step.step = ++last_step_;
  out.step.rows.reserve(requests_.size());
  crossings_ = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const auto id = static_cast<request_id>(i + 1);
    out.step.rows.push_back(schedule(id, 1, row_kind::running));
    const auto end = requests_[i].computed;
    if (end % block_tokens == 0)
      out.keys.push_back(
        keys_of(id, end / block_tokens - 1, end / block_tokens));
    crossings_ += end % (block_tokens * config_.blocks_per_chunk) == 0;
  }
  return out;
}

step_row engine_load::schedule(request_id id, token_count tokens,
                               row_kind kind) {
  auto& now = requests_[id - 1];
  auto out = step_row{};
  out.request = id;
  out.kind = kind;
  out.computed = now.computed;
  out.scheduled = tokens;
  now.computed += tokens;
  out.known = now.computed;
  const auto blocks = (now.computed + block_tokens - 1) / block_tokens;
  if (blocks == now.blocks)
    return out;
  out.new_blocks.resize(config_.sliding ? 2 : 1);
  for (; now.blocks < blocks; ++now.blocks)
    for (auto& group : out.new_blocks)
      group.push_back(++last_block_);
  return out;
}

} // namespace kvtide::bench
