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
    const auto& at = place(index);
    return {at.hash, group_, model_, at.digest};
  }

  /// @pre `index < size()`
  [[nodiscard]] const prefix_hash& hash(std::size_t index) const noexcept {
    return place(index).hash;
  }

  [[nodiscard]] group_id group() const noexcept {
    return group_;
  }

private:
  friend class key_list;

  struct entry {
    prefix_hash hash;
    /// See core/key_hash.hpp.
    std::uint64_t digest = 0;
  };

  /// Of `segment_keys` entries each, but the last may have room for less.
  using segments = std::vector<std::shared_ptr<entry[]>>;

  [[nodiscard]] const entry& place(std::size_t index) const noexcept {
    assert(index < size_);
    return (*segments_)[index / segment_keys][index % segment_keys];
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

  /// Replaced, never changed: views share it.
  std::shared_ptr<const key_view::segments> segments_;
  /// Keys that `segments_` have room for.
  std::size_t room_ = 0;
  std::size_t size_ = 0;
  group_id group_ = 0;
  std::uint64_t model_ = 0;
};

} // namespace kvtide::core
