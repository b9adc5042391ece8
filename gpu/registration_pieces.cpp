// SPDX-License-Identifier: Apache-2.0

#include "gpu/registration_pieces.hpp"

#include "gpu/memory_limits.hpp"

#include <algorithm>
#include <numeric>
#include <string>

namespace kvtide::gpu {

result<registration_pieces> registration_pieces::cut(const slot_pool& pool,
                                                     std::uint64_t slot_bytes,
                                                     std::uint64_t page_bytes,
                                                     std::uint64_t largest) {
  registration_pieces out;
  if (pool.slots == 0)
    return out;
  auto slots = std::min<std::uint64_t>(largest / slot_bytes, pool.slots);
  if (slots < pool.slots) {
    // `n` slots end on a page if the page size P divides n * S, S being the
    // size of a slot. With g = gcd(P, S) that is: P / g divides n * (S / g).
    // P / g and S / g have no common divisor, so it is: P / g divides n. A
    // piece of such a number starts on a page because all before it ended on
    // one. P is a power of two and S a multiple of 64, so that P / g <= P / 64:
    // at most 64 slots for pages of 4 KiB.
    const auto unit = page_bytes / std::gcd(page_bytes, slot_bytes);
    slots -= slots % unit;
    if (slots == 0)
      return error{
        ec::invalid_options,
        "the host pool is registered in pieces of whole slots that start on a "
        "page, and the smallest such piece has "
          + std::to_string(unit) + " slots of " + in_words(slot_bytes)
          + ", which is more than the largest allowed one of "
          + in_words(largest) + ": choose other options::blocks_per_chunk"};
  }
  out.base_ = pool.base;
  out.bytes_ = pool.slots * slot_bytes;
  out.piece_bytes_ = slots * slot_bytes;
  out.count_ = (pool.slots + slots - 1) / slots;
  return out;
}

registration_pieces::piece
registration_pieces::operator[](std::uint64_t index) const noexcept {
  const auto first = index * piece_bytes_;
  return {base_ + first, std::min(piece_bytes_, bytes_ - first)};
}

} // namespace kvtide::gpu
