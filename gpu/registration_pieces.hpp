// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/geometry.hpp"

#include <cstddef>
#include <cstdint>

namespace kvtide::gpu {

/// How a host pool is cut for registration (G5): into pieces of whole slots,
/// each of which starts on a page, so that no two of them share one.
///
/// A fragment never leaves its slot (`geometry::append_fragments` refuses it)
/// and a slot never leaves its piece, so a copy of one fragment has one
/// registration. Whatever joins fragments of several slots has to ask for it
/// (`pool_registration::device_address`).
///
/// Immutable; safe to read from any thread.
class registration_pieces {
public:
  struct piece {
    std::byte* first = nullptr;
    std::uint64_t bytes = 0;
  };

  /// No pieces: nothing is registered.
  registration_pieces() = default;

  /// @param pool its base starts on a page.
  /// @param page_bytes a power of two.
  /// @param largest upper limit of a piece, in bytes.
  /// @returns `ec::invalid_options` if the pool needs several pieces and even
  ///          the smallest that ends on a page is larger than that.
  [[nodiscard]] static result<registration_pieces> cut(const slot_pool& pool,
                                                       std::uint64_t slot_bytes,
                                                       std::uint64_t page_bytes,
                                                       std::uint64_t largest);

  [[nodiscard]] std::uint64_t count() const noexcept {
    return count_;
  }

  /// Bytes of all pieces but the last, which may have fewer.
  [[nodiscard]] std::uint64_t piece_bytes() const noexcept {
    return piece_bytes_;
  }

  /// @pre `index < count()`
  [[nodiscard]] piece operator[](std::uint64_t index) const noexcept;

private:
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint64_t piece_bytes_ = 0;
  std::uint64_t count_ = 0;
};

} // namespace kvtide::gpu
