// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "bench/copy/decode_graph.hpp"
#include "gpu/cuda/device_buffer.hpp"
#include "gpu/cuda/event.hpp"
#include "gpu/cuda/pinned_buffer.hpp"
#include "gpu/cuda/stream.hpp"

#include <cstdint>
#include <vector>

namespace kvtide::bench {

/// Iterations as decode has them: a small upload, and a graph of a few kernels
/// that are bound by memory. Times are the device's own, in seconds.
class decode_loop {
public:
  struct times {
    std::vector<double> iteration;
    std::vector<double> upload;
  };

  /// Takes 8 times 128 MiB of the current device, and finds out how many bytes
  /// make a kernel of 20 us.
  /// @param quick takes 8 times 64 KiB, and finds out nothing
  [[nodiscard]] error start(bool quick);

  [[nodiscard]] error run(std::uint32_t iterations, times& out);

  [[nodiscard]] std::uint64_t bytes_per_kernel() const {
    return bytes_;
  }

private:
  [[nodiscard]] error capture(std::uint64_t bytes);

  [[nodiscard]] error iterate(times& out);

  gpu::device_buffer memory_;
  gpu::device_buffer inputs_;
  gpu::pinned_buffer source_;
  gpu::cuda_stream stream_;
  gpu::cuda_event begin_;
  gpu::cuda_event uploaded_;
  gpu::cuda_event end_;
  std::uint64_t bytes_ = 0;
  decode_graph_owner graph_;
};

} // namespace kvtide::bench
