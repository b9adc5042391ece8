// SPDX-License-Identifier: Apache-2.0

#include "gpu/named_pool_table.hpp"

#include <array>
#include <cstring>

namespace kvtide::gpu {

namespace {

/// "kvtpool" and a zero, on machines that start with the low byte; another
/// number on the others, which cannot read each other's pools.
constexpr std::uint64_t magic = 0x006C'6F6F'7074'766BU;

/// Counts up with every change of the layout.
constexpr std::uint32_t version = 1;

enum : std::uint32_t {
  empty = 0,
  writing = 1,
  valid = 2,
};

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

} // namespace

struct named_pool_table::header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t slots;
  std::uint64_t slot_bytes;
  content_digest form;
  content_digest model;
  /// Of all above.
  std::uint64_t sum;
};

/// A cache line, so that entries have nothing in common.
struct alignas(64) named_pool_table::entry {
  std::atomic<std::uint32_t> state;
  std::uint32_t unused;
  std::uint64_t bytes;
  content_digest key;
  content_digest content;
  /// Of all above but the state, and of the slot.
  std::uint64_t sum;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free,
              "other processes read the states");

std::uint64_t named_pool_table::header_bytes() noexcept {
  return sizeof(header);
}

std::uint64_t named_pool_table::bytes_for(std::uint32_t slots,
                                          std::uint64_t page_bytes) {
  static_assert(sizeof(header) <= 2 * sizeof(entry));
  return round_up((2 + std::uint64_t{slots}) * sizeof(entry), page_bytes);
}

named_pool_table::header& named_pool_table::head() const noexcept {
  return *reinterpret_cast<header*>(first_);
}

named_pool_table::entry& named_pool_table::at(slot_id slot) const noexcept {
  return reinterpret_cast<entry*>(first_)[2 + std::size_t{slot}];
}

std::uint64_t named_pool_table::sum_of(const header& x) const {
  return digest_(&x, offsetof(header, sum)).low;
}

std::uint64_t named_pool_table::sum_of(const entry& x, slot_id slot) const {
  const auto words = std::array<std::uint64_t, 6>{
    slot, x.bytes, x.key.low, x.key.high, x.content.low, x.content.high};
  return digest_(words.data(), sizeof(words)).low;
}

// -- the pool -----------------------------------------------------------------

std::string named_pool_table::misfit(const pool_identity& wanted) const {
  const auto& x = head();
  if (x.magic != magic)
    return "it was never finished, or is no host pool";
  if (x.version != version)
    return "another version of the library made it";
  if (x.sum != sum_of(x))
    return "it is damaged";
  if (!(x.model == wanted.model))
    return "it belongs to another model (model_fingerprint)";
  if (!(x.form == wanted.form) || x.slot_bytes != wanted.slot_bytes)
    return "its chunks have another form";
  if (x.slots != wanted.slots)
    return "it has " + std::to_string(x.slots) + " slots and "
         + std::to_string(wanted.slots) + " are wanted (host_bytes)";
  return {};
}

void named_pool_table::begin(const pool_identity& identity) {
  auto& x = head();
  x.version = version;
  x.slots = identity.slots;
  x.slot_bytes = identity.slot_bytes;
  x.form = identity.form;
  x.model = identity.model;
  x.magic = magic;
  x.sum = sum_of(x);
}

// -- slots --------------------------------------------------------------------

void named_pool_table::start_writing(slot_id slot) noexcept {
  at(slot).state.store(writing, std::memory_order_relaxed);
  // Whoever writes the bytes hears of it later than this.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void named_pool_table::finish_writing(const slot_content& content,
                                      content_digest bytes) {
  auto& x = at(content.slot);
  x.bytes = content.bytes;
  x.key = content.key;
  x.content = bytes;
  x.sum = sum_of(x, content.slot);
  // Last of all, with all of the above behind it.
  x.state.store(valid, std::memory_order_release);
}

void named_pool_table::forget(slot_id slot) noexcept {
  at(slot).state.store(empty, std::memory_order_release);
}

std::optional<slot_content> named_pool_table::content(slot_id slot) const {
  const auto& x = at(slot);
  if (x.state.load(std::memory_order_acquire) != valid
      || x.bytes > head().slot_bytes || x.sum != sum_of(x, slot))
    return std::nullopt;
  return slot_content{slot, x.bytes, x.key};
}

content_digest named_pool_table::noted_digest(slot_id slot) const noexcept {
  return at(slot).content;
}

} // namespace kvtide::gpu
