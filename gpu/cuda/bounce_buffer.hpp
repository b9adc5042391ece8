// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/copy_engine.hpp"
#include "gpu/cuda/pinned_buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kvtide::gpu {

/// What a host function copies between the pool and a bounce buffer.
struct bounce_move {
  std::vector<fragment> parts;
};

/// Pinned memory through which a stream copies to and from a host pool that is
/// not pinned. The copies between pool and buffer are host functions of the
/// same stream, so its order keeps slices apart, and one buffer per stream is
/// enough.
class bounce_buffer {
public:
  [[nodiscard]] static result<bounce_buffer> make(std::uint64_t bytes);

  /// Bytes of fragments that certainly fit.
  [[nodiscard]] std::uint64_t room() const noexcept {
    return room_;
  }

  /// Puts the buffer in the place of the pool.
  /// @returns what is to be copied between the two
  /// @pre no more bytes than `room()`, in at most `most_fragments` fragments
  [[nodiscard]] std::unique_ptr<bounce_move>
  redirect(job_kind kind, std::vector<fragment>& parts) const;

  /// Where the device sees an address in the buffer.
  [[nodiscard]] void* device_address(const void* host) const noexcept;

  /// Leaks the memory (G7).
  void abandon() noexcept {
    memory_.release();
  }

  static constexpr std::size_t most_fragments = 4'096;

private:
  pinned_buffer memory_;
  std::byte* device_ = nullptr;
  std::uint64_t room_ = 0;
};

/// A host function for `cudaLaunchHostFunc`; takes a `bounce_move*`.
void make_bounce_move(void* data);

} // namespace kvtide::gpu
