// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda_choices.hpp"

#include <string>
#include <utility>

namespace kvtide::gpu {

namespace {

constexpr std::uint32_t most_kernel_blocks = 1'024;
constexpr std::uint32_t most_streams = 16;
/// Below, a copy is all overhead.
constexpr std::uint64_t least_slice_bytes = 4'096;
constexpr std::uint32_t most_prefault_threads = 256;

} // namespace

error fault_of(const cuda_options& opts) {
  auto out = error{ec::invalid_options, {}};
  if (opts.path > copy_path::kernel)
    out.text = "cuda.path has a value that does not exist.";
  else if (opts.fences > fence_wait::host)
    out.text = "cuda.fences has a value that does not exist.";
  else if (opts.huge_pages > huge_page_use::required)
    out.text = "cuda.huge_pages has a value that does not exist.";
  else if (opts.slice_bytes != 0 && opts.slice_bytes < least_slice_bytes)
    out.text = "cuda.slice_bytes is " + std::to_string(opts.slice_bytes)
             + "; it must be 0 (as measured) or at least "
             + std::to_string(least_slice_bytes) + ".";
  else if (opts.kernel_blocks < 1 || opts.kernel_blocks > most_kernel_blocks)
    out.text = "cuda.kernel_blocks is " + std::to_string(opts.kernel_blocks)
             + "; it must be 1 to " + std::to_string(most_kernel_blocks) + ".";
  else if (opts.streams_per_direction < 1
           || opts.streams_per_direction > most_streams)
    out.text = "cuda.streams_per_direction is "
             + std::to_string(opts.streams_per_direction) + "; it must be 1 to "
             + std::to_string(most_streams) + ".";
  else if (opts.bytes_in_flight != 0 && opts.bytes_in_flight < opts.slice_bytes)
    out.text = "cuda.bytes_in_flight is " + std::to_string(opts.bytes_in_flight)
             + "; it must be 0 (two slices) or at least slice_bytes, which is "
             + std::to_string(opts.slice_bytes) + ".";
  else if (opts.prefault_threads > most_prefault_threads)
    out.text = "cuda.prefault_threads is "
             + std::to_string(opts.prefault_threads) + "; it must be at most "
             + std::to_string(most_prefault_threads)
             + ", or 0 for one per core.";
  else
    out.code = ec::none;
  return out;
}

cuda_engine_config engine_config_of(const cuda_options& opts) {
  auto out = cuda_engine_config{};
  out.path = opts.path;
  out.kernel_below = opts.kernel_below;
  out.kernel_blocks = opts.kernel_blocks;
  out.slice_bytes = opts.slice_bytes;
  out.bytes_in_flight = opts.bytes_in_flight;
  out.streams_per_direction = opts.streams_per_direction;
  out.fences = opts.fences;
  out.calibration_file = opts.calibration_file;
  return out;
}

host_pool_config pool_config_of(const cuda_options& opts,
                                std::uint64_t host_bytes,
                                std::optional<int> numa_node,
                                std::shared_ptr<pool_registration> pins) {
  auto out = host_pool_config{};
  out.host_bytes = host_bytes;
  out.memory.reserve = true;
  out.memory.prefault = true;
  out.memory.prefault_threads = opts.prefault_threads;
  out.memory.huge_pages = opts.huge_pages;
  if (opts.numa_binding)
    out.memory.numa_node = numa_node;
  out.registrar = std::move(pins);
  out.allow_pageable = opts.allow_pageable;
  return out;
}

} // namespace kvtide::gpu
