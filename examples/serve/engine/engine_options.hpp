// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/kv_memory.hpp"
#include "kvtide/options.hpp"

#include "examples/serve/model/model_shape.hpp"

#include <chrono>
#include <cstdint>
#include <functional>

namespace kvtide {
class runtime;
} // namespace kvtide

namespace serve {

/// Everything that is decided before the engine starts.
struct engine_options {
  model_variant variant = model_variant::full_attention;

  /// Of the weights: equal seeds give the same model, on every machine.
  std::uint64_t seed = 1;

  /// Longest request, prompt and answer together, in tokens.
  std::int32_t max_tokens = 2'048;

  /// Blocks of device memory, shared by all groups; at least 2.
  std::uint32_t device_blocks = 512;

  /// Tokens per block, at least 1.
  std::int32_t tokens_per_block = 16;

  /// Blocks that are stored and loaded together, at least 1.
  std::int32_t blocks_per_chunk = 2;

  /// Bytes of the pool in host memory; zero turns offloading off.
  std::uint64_t host_bytes = std::uint64_t{64} << 20;

  kvtide::eviction_policy policy = kvtide::eviction_policy::lru;

  /// Requests that run or load at the same time, at least 1.
  std::uint32_t max_batch = 32;

  /// Tokens that one step computes at most, at least 1: a long prompt takes
  /// several steps, so that others are not held up.
  std::int32_t step_tokens = 256;

  /// Requests that wait before `submit` refuses more, at least 1.
  std::uint32_t queue_limit = 1'024;

  /// Added to each copy between device and host, and its bytes per second in
  /// each direction (zero: as fast as the memory is).
  std::chrono::microseconds copy_latency{0};
  std::uint64_t copy_bytes_per_second = 0;

  /// Longest time a copy may take, see `kvtide::options::job_deadline`.
  std::chrono::milliseconds job_deadline{10'000};

  /// Times that a lost cache is started again, empty; then the engine goes on
  /// without one.
  std::uint32_t cache_restarts = 3;

  /// For tests: called on the engine's thread when a cache has started and has
  /// its memory, before any other call.
  std::function<void(kvtide::runtime&, const kvtide::kv_memory&)> on_cache;
};

} // namespace serve
