// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"

#include "gpu/copy_engine.hpp"
#include "gpu/cuda/cuda.hpp"
#include "gpu/cuda/cuda_copy_engine.hpp"
#include "gpu/cuda/piece_tables.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kvtide::gpu {

/// What became of fragments that were to be enqueued.
struct enqueued_fragments {
  /// All before this one are under way; of the others, some may be.
  std::size_t count = 0;
  /// Why not all are.
  error why;
  /// To be kept until the copies have ended.
  std::unique_ptr<piece_tables::table> table;
};

/// Turns fragments into commands in a stream, each by the path that suits it.
class copy_commands {
public:
  struct settings {
    copy_path path = copy_path::automatic;
    std::uint64_t kernel_below = 0;
    std::uint32_t kernel_blocks = 1;
  };

  /// Where the device sees an address on the host; null if it does not.
  using device_view = std::function<void*(const void*, std::uint64_t)>;

  /// @param tables outlives this object
  copy_commands(settings how, piece_tables& tables, device_view view);

  /// Enqueues fragments, in any order among themselves. What the driver refuses
  /// to take together is tried again one by one, so that one bad fragment does
  /// not take others with it.
  /// @pre the device is current, `stream` is none of the default ones, and the
  ///      fragments are few enough for one batch call (G4)
  [[nodiscard]] enqueued_fragments enqueue(job_kind kind,
                                           const std::vector<fragment>& what,
                                           cudaStream_t stream);

private:
  [[nodiscard]] bool suits_kernel(const fragment& what) const noexcept;

  /// These enqueue what `indices` name and return how many they took.
  std::size_t enqueue_kernel(job_kind kind, const std::vector<fragment>& what,
                             cudaStream_t stream, enqueued_fragments& out);

  std::size_t enqueue_batch(const std::vector<fragment>& what,
                            const std::vector<std::size_t>& indices,
                            cudaStream_t stream);

  std::size_t enqueue_plain(const std::vector<fragment>& what,
                            const std::vector<std::size_t>& indices,
                            std::size_t first, cudaStream_t stream, error& why);

  settings how_;
  piece_tables* tables_;
  device_view view_;
  /// False once the driver has said that it does not know batches.
  bool batches_ = true;

  // Reused by each call.
  std::vector<std::size_t> small_;
  std::vector<std::size_t> large_;
  std::vector<void*> dsts_;
  std::vector<void*> srcs_;
  std::vector<std::size_t> sizes_;
};

} // namespace kvtide::gpu
