// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/gpu.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::replay {

/// The compute stream of one rank on a GPU. In the role of kernels it writes
/// and reads KV bytes by copies, in the order of the calls, and behind the
/// fences that it was told to wait for. One thread at a time.
///
/// Every call may throw `replay_failure`: a GPU that fails ends the replay.
class gpu_lane {
public:
  /// Throws `bad_configuration` if there is no such GPU.
  explicit gpu_lane(int device);

  /// For `kv_memory::streams` and `rank::record_event`.
  [[nodiscard]] std::uint64_t handle() const noexcept {
    return stream_.handle();
  }

  /// All calls after this one wait for the copies behind the fence.
  void wait(const fence& until);

  /// Enqueues that bytes `[first, last)` of a block's piece become as
  /// `fill_pattern` writes them.
  void write(std::byte* piece, std::size_t first, std::size_t last,
             std::uint64_t seed);

  /// Blocks until bytes `[first, last)` of a block's piece are here.
  /// @returns a piece of which these bytes can be read until the next call
  [[nodiscard]] const std::byte* read(const std::byte* piece, std::size_t first,
                                      std::size_t last);

  /// Blocks until all that was enqueued is over.
  void finish();

private:
  gpu::compute_stream stream_;
  /// Sources of the writes that may not be over yet, one behind the other.
  std::vector<std::byte> written_;
  std::size_t used_ = 0;
  std::vector<std::byte> read_;
};

} // namespace kvtide::replay
