// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a host pool that outlives its process says of its slots. It lies in
/// shared memory, in front of the slots, and is written so that whoever reads
/// it after the writer was killed, between any two instructions, believes no
/// slot whose bytes are not all there.

#pragma once

#include "kvtide/ids.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kvtide::gpu {

/// 128 bits that stand for content.
struct content_digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const content_digest&, const content_digest&)
    = default;
};

/// Passed in, so that this folder needs no hash of its own. Two contents never
/// have the same digest, and the same has the same one in every process.
using digest_function = content_digest (*)(const void* data, std::size_t size);

/// What has to be the same for slots to keep their meaning.
struct pool_identity {
  std::uint32_t slots = 0;
  std::uint64_t slot_bytes = 0;
  /// Of what says where which bytes of a chunk lie.
  content_digest form;
  /// Of the model's fingerprint.
  content_digest model;
};

/// What lies in a slot.
struct slot_content {
  slot_id slot = 0;
  /// From its first one.
  std::uint64_t bytes = 0;
  /// Of the chunk's key.
  content_digest key;
};

/// A view of the table in memory; owns nothing. One thread at a time writes an
/// entry; entries are independent.
class named_pool_table {
public:
  /// Of the table, in whole pages of `page_bytes`; the slots follow.
  [[nodiscard]] static std::uint64_t bytes_for(std::uint32_t slots,
                                               std::uint64_t page_bytes);

  /// @param first of `bytes_for(identity.slots, ...)` bytes on a page.
  named_pool_table(std::byte* first, digest_function digest) noexcept
    : first_(first), digest_(digest) {
    // nop
  }

  /// Why the table cannot be used as it is: half a sentence; empty if it can.
  /// @param bytes what of it is there, at least those of a header.
  [[nodiscard]] std::string misfit(const pool_identity& wanted) const;

  /// Bytes that `misfit` reads.
  [[nodiscard]] static std::uint64_t header_bytes() noexcept;

  /// Makes an empty one of zeros. The last thing to be done for a new pool.
  void begin(const pool_identity& identity);

  /// From here on the bytes of the slot may change.
  void start_writing(slot_id slot) noexcept;

  /// The bytes are there, and their digest is `bytes`.
  /// @pre `start_writing` came before
  void finish_writing(const slot_content& content, content_digest bytes);

  /// Nobody knows what lies in the slot.
  void forget(slot_id slot) noexcept;

  /// What the slot holds if its bytes still have the digest that is noted: see
  /// `noted_digest`. Nothing if it was empty, or being written, or if the entry
  /// is damaged.
  [[nodiscard]] std::optional<slot_content> content(slot_id slot) const;

  /// @pre `content(slot)`
  [[nodiscard]] content_digest noted_digest(slot_id slot) const noexcept;

private:
  struct header;
  struct entry;

  [[nodiscard]] header& head() const noexcept;
  [[nodiscard]] entry& at(slot_id slot) const noexcept;
  [[nodiscard]] std::uint64_t sum_of(const header& x) const;
  [[nodiscard]] std::uint64_t sum_of(const entry& x, slot_id slot) const;

  std::byte* first_;
  digest_function digest_;
};

} // namespace kvtide::gpu
