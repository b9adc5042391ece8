// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/cache_link.hpp"

#include "kvtide/blocking.hpp"

#include <chrono>
#include <utility>

namespace serve {

namespace {

// Clearing a large pool takes a while; nothing else does.
constexpr auto patience = std::chrono::seconds{30};

kvtide::options make_options(const engine_options& opts,
                             const std::string& fingerprint, bool off) {
  const auto shape = model_shape{opts.variant};
  auto res = kvtide::options{};
  res.groups.clear();
  for (auto group = std::size_t{0}; group < shape.groups(); ++group)
    res.groups.push_back(
      {opts.tokens_per_block, shape.window_of(group), false});
  res.blocks_per_chunk = opts.blocks_per_chunk;
  res.tokens_per_hash = opts.tokens_per_block;
  res.model_fingerprint = fingerprint;
  res.host_bytes = off ? 0 : opts.host_bytes;
  res.policy = opts.policy;
  res.copy_latency = opts.copy_latency;
  res.copy_bytes_per_second = opts.copy_bytes_per_second;
  res.job_deadline = opts.job_deadline;
  return res;
}

} // namespace

kvtide::result<std::unique_ptr<cache_link>>
cache_link::start(const engine_options& opts, device_memory& memory,
                  const std::string& fingerprint, bool off) {
  auto started = kvtide::runtime::start(make_options(opts, fingerprint, off));
  if (!started)
    return started.failure();
  auto res = std::unique_ptr<cache_link>{
    new cache_link{std::move(started).value(), off}};
  const auto described = memory.describe(fingerprint);
  const auto registered
    = kvtide::blocking_rank{res->side()}.register_kv(described, patience);
  if (!registered)
    return registered.failure();
  if (opts.on_cache && !off)
    opts.on_cache(res->calls(), described);
  return res;
}

} // namespace serve
