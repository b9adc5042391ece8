// SPDX-License-Identifier: Apache-2.0

#include "bench/load.hpp"

#include <utility>

namespace kvtide::bench {

namespace {

extend_keys keys_of(request_id id, token_count first, token_count end) {
  auto out = extend_keys{};
  out.request = id;
  out.first = static_cast<std::uint64_t>(first);
  out.hashes = hashes_of(id, first, end);
  return out;
}

} // namespace

std::vector<prefix_hash> hashes_of(std::uint64_t prompt, token_count first,
                                   token_count end) {
  auto out = std::vector<prefix_hash>{};
  for (auto block = first; block < end; ++block) {
    const std::uint64_t name[] = {prompt, static_cast<std::uint64_t>(block)};
    out.emplace_back(name, sizeof(name));
  }
  return out;
}

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

token_count engine_load::prompt_of(std::size_t place) const {
  const auto chunk = block_tokens * config_.blocks_per_chunk;
  return config_.context
       + static_cast<token_count>(place) * chunk
           / static_cast<token_count>(config_.requests) % chunk;
}

add_request engine_load::begin(std::size_t place) {
  requests_[place] = {++last_request_, 0, 0};
  auto out = add_request{};
  out.request = last_request_;
  out.prompt_tokens = out.known_tokens = prompt_of(place);
  return out;
}

engine_load::arrival engine_load::arrive() {
  const auto place = requests_.size();
  auto& now = requests_.emplace_back();
  auto out = arrival{};
  out.add = begin(place);
  const auto tokens = out.add.prompt_tokens;
  out.keys = keys_of(now.id, 0, tokens / block_tokens);
  out.prefill.step = ++last_step_;
  out.prefill.rows.push_back(schedule(now, tokens, row_kind::fresh));
  return out;
}

engine_load::decoding engine_load::decode() {
  auto out = decoding{};
  out.step.step = ++last_step_;
  out.step.rows.reserve(requests_.size());
  crossings_ = 0;
  for (std::size_t i = 0; i < config_.churn; ++i)
    replace_one(out);
  for (auto& now : requests_) {
    if (now.computed == 0)
      continue;
    out.step.rows.push_back(schedule(now, 1, row_kind::running));
    const auto end = now.computed;
    if (end % block_tokens == 0)
      out.keys.push_back(
        keys_of(now.id, end / block_tokens - 1, end / block_tokens));
    crossings_ += end % (block_tokens * config_.blocks_per_chunk) == 0;
  }
  for (std::size_t i = 0; i < out.arrivals.size(); ++i) {
    const auto place
      = (next_end_ + requests_.size() - config_.churn + i) % requests_.size();
    out.step.rows.push_back(schedule(
      requests_[place], out.arrivals[i].prompt_tokens, row_kind::fresh));
  }
  crossings_ += out.arrivals.size();
  return out;
}

void engine_load::replace_one(decoding& out) {
  const auto place = next_end_;
  next_end_ = (next_end_ + 1) % requests_.size();
  const auto& old = requests_[place];
  out.ends.push_back(
    {old.id, finish_reason::length, old.computed, old.computed});
  out.step.finished.push_back(out.ends.back());
  out.arrivals.push_back(begin(place));
  const auto tokens = out.arrivals.back().prompt_tokens;
  out.keys.push_back(keys_of(requests_[place].id, 0, tokens / block_tokens));
}

step_row engine_load::schedule(running& now, token_count tokens,
                               row_kind kind) {
  auto out = step_row{};
  out.request = now.id;
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
