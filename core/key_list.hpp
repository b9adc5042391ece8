// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include "core/key_ref.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kvtide::core {

/// The chunk hashes of one request and group, as somebody else reads them: a
/// snapshot of a `key_list` that costs one pointer, however long the list is.
/// Safe to read while the list grows, also on another thread, because only
/// places behind `size()` are written.
class key_view {
public:
  static constexpr std::size_t segment_keys = 256;

  key_view() = default;

  [[nodiscard]] std::size_t size() const noexcept {
    return size_;
  }

  [[nodiscard]] bool empty() const noexcept {
    return size_ == 0;
  }

  /// @pre `index < size()`
  [[nodiscard]] chunk_key operator[](std::size_t index) const {
    return {hash(index), group_, model_};
  }

  /// The same, without a copy. Ends with the view.
  /// @pre `index < size()`
  [[nodiscard]] key_ref ref(std::size_t index) const noexcept {
    assert(index < size_);
    const auto& part = segment_of(index);
    const auto place = index % segment_keys;
    return {part.hashes[place], group_, model_, part.digests[place]};
  }

  /// @pre `index < size()`
  [[nodiscard]] const prefix_hash& hash(std::size_t index) const noexcept {
    assert(index < size_);
    return segment_of(index).hashes[index % segment_keys];
  }

  [[nodiscard]] group_id group() const noexcept {
    return group_;
  }

private:
  friend class key_list;

  /// The digests lie apart: whoever looks for keys that are absent reads
  /// nothing else.
  struct segment {
    std::shared_ptr<prefix_hash[]> hashes;
    /// See core/key_hash.hpp.
    std::shared_ptr<std::uint64_t[]> digests;
  };

  /// Of `segment_keys` keys each, but the last may have room for less.
  using segments = std::vector<segment>;

  [[nodiscard]] const segment& segment_of(std::size_t index) const noexcept {
    return (*segments_)[index / segment_keys];
  }

  std::shared_ptr<const segments> segments_;
  std::size_t size_ = 0;
  group_id group_ = 0;
  std::uint64_t model_ = 0;
};

/// Owns the chunk hashes of one request and group. Grows at the end; shrinks
/// only by `truncate`. Not thread-safe, but its views are.
class key_list {
public:
  key_list(group_id group, std::uint64_t model) : group_(group), model_(model) {
    // nop
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return size_;
  }

  void append(const prefix_hash& hash);

  /// Forgets all keys from `size` on. A segment that somebody may still read
  /// is replaced, not overwritten.
  void truncate(std::size_t size);

  /// @pre `index < size()`
  [[nodiscard]] chunk_key operator[](std::size_t index) const {
    return view()[index];
  }

  [[nodiscard]] key_view view() const;

private:
  /// Makes room for `size_ + 1` keys.
  void grow();

  /// A new segment with room for more than `kept` keys, the first ones of
  /// `old`.
  static key_view::segment renew(const key_view::segment& old, std::size_t kept,
                                 std::size_t room);

  /// Replaced, never changed: views share it.
  std::shared_ptr<const key_view::segments> segments_;
  /// Keys that `segments_` have room for.
  std::size_t room_ = 0;
  std::size_t size_ = 0;
  group_id group_ = 0;
  std::uint64_t model_ = 0;
};

} // namespace kvtide::core
