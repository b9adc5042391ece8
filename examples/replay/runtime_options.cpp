// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/runtime_options.hpp"

#include <chrono>
#include <cstdint>

namespace kvtide::replay {

options make_runtime_options(const replay_options& opts) {
  auto res = options{};
  res.groups.clear();
  for (auto group = std::size_t{0}; group < opts.shape.groups(); ++group)
    res.groups.push_back(
      {static_cast<std::int32_t>(opts.shape.tokens_per_block),
       static_cast<std::int32_t>(opts.shape.window(group)), false});
  res.blocks_per_chunk = static_cast<std::int32_t>(opts.blocks_per_chunk);
  res.tokens_per_hash = static_cast<std::int32_t>(opts.shape.tokens_per_block);
  res.model_fingerprint = opts.fingerprint;
  res.ranks = opts.ranks;
  res.workers = opts.workers;
  res.host_bytes = opts.host_bytes;
  res.pool_name = opts.pool_name;
  res.policy = opts.policy;
  res.cache_events = true;
  res.rules = opts.rules;
  res.delivery = opts.delivery;
  res.device = opts.kind();
  res.cuda = opts.cuda;
  res.copy_latency = std::chrono::microseconds{opts.copy_latency_us};
  res.copy_bytes_per_second = opts.copy_bytes_per_second();
  // A step computes for simulated milliseconds; nobody is idle before the next
  // one is due.
  if (opts.simulated())
    res.idle_delay = std::chrono::milliseconds{2 * opts.step_ms};
  return res;
}

} // namespace kvtide::replay
