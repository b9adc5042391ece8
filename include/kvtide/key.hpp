// SPDX-License-Identifier: Apache-2.0

/// @file
/// The identity of cached content.

#pragma once

#include "kvtide/ids.hpp"

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kvtide {

/// The engine's hash of a token prefix, as opaque bytes. LoRA, multi-modal
/// input and tenant salt enter through it. Equal hashes mean equal prefixes.
class prefix_hash {
public:
  static constexpr std::size_t max_bytes = 64;

  /// The empty hash, equal only to itself.
  prefix_hash() = default;

  /// Copies `size` bytes.
  /// @pre `size <= max_bytes`
  prefix_hash(const void* data, std::size_t size)
    : size_(static_cast<std::uint8_t>(size)) {
    assert(size <= max_bytes);
    if (size > 0)
      std::memcpy(bytes_.data(), data, size);
  }

  [[nodiscard]] const std::uint8_t* data() const noexcept {
    return bytes_.data();
  }

  /// In bytes, 0 to `max_bytes`.
  [[nodiscard]] std::size_t size() const noexcept {
    return size_;
  }

  friend bool operator==(const prefix_hash& x, const prefix_hash& y) noexcept {
    return x.size_ == y.size_
        && std::memcmp(x.bytes_.data(), y.bytes_.data(), x.size_) == 0;
  }

  friend bool operator!=(const prefix_hash& x, const prefix_hash& y) noexcept {
    return !(x == y);
  }

  /// Orders by bytes; for sorted output only, the order has no meaning.
  friend bool operator<(const prefix_hash& x, const prefix_hash& y) noexcept {
    const auto common = x.size_ < y.size_ ? x.size_ : y.size_;
    const auto cmp = std::memcmp(x.bytes_.data(), y.bytes_.data(), common);
    return cmp != 0 ? cmp < 0 : x.size_ < y.size_;
  }

private:
  std::uint8_t size_ = 0;
  std::array<std::uint8_t, max_bytes> bytes_{};
};

/// Identity of one chunk's content: prefix, group, and the model that computed
/// it (`options::model_fingerprint`).
struct chunk_key {
  prefix_hash hash;
  group_id group = 0;
  std::uint64_t model = 0;
};

inline bool operator==(const chunk_key& x, const chunk_key& y) noexcept {
  return x.group == y.group && x.model == y.model && x.hash == y.hash;
}

inline bool operator!=(const chunk_key& x, const chunk_key& y) noexcept {
  return !(x == y);
}

/// For sorted output only, the order has no meaning.
inline bool operator<(const chunk_key& x, const chunk_key& y) noexcept {
  if (x.hash != y.hash)
    return x.hash < y.hash;
  return x.group != y.group ? x.group < y.group : x.model < y.model;
}

} // namespace kvtide
