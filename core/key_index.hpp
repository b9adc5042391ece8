// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include "core/key_hash.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace kvtide::core {

/// Finds the row of a table that has a given key. Keeps row numbers and a part
/// of each hash only: the keys stay in the table, where they are read as
/// `table[row].key`. Open addressing with linear probing; the steps of a
/// look-up can be taken apart, so that many of them share the wait for memory.
template <class Table>
class key_index {
public:
  using row_t = std::uint32_t;

  /// `table` must outlive the index and stay at its address.
  explicit key_index(const Table& table) : table_(table) {
    // nop
  }

  [[nodiscard]] static std::size_t hash_of(const chunk_key& key) noexcept {
    return key_hash{}(key);
  }

  [[nodiscard]] std::optional<row_t> find(const chunk_key& key) const {
    return find(key, hash_of(key));
  }

  /// @pre `hash == hash_of(key)`
  [[nodiscard]] std::optional<row_t> find(const chunk_key& key,
                                          std::size_t hash) const {
    if (size_ == 0)
      return std::nullopt;
    for (auto at = hash & mask(); buckets_[at].row != none; at = next(at))
      if (buckets_[at].tag == tag_of(hash)
          && table_[buckets_[at].row].key == key)
        return buckets_[at].row;
    return std::nullopt;
  }

  /// First step of a look-up ahead of time.
  void prefetch(std::size_t hash) const noexcept {
    if (size_ > 0)
      __builtin_prefetch(&buckets_[hash & mask()]);
  }

  /// Second step, when the first had time to finish.
  void prefetch_row(std::size_t hash) const noexcept {
    if (size_ == 0)
      return;
    for (auto at = hash & mask(); buckets_[at].row != none; at = next(at)) {
      if (buckets_[at].tag != tag_of(hash))
        continue;
      const auto* row
        = reinterpret_cast<const char*>(&table_[buckets_[at].row]);
      __builtin_prefetch(row);
      __builtin_prefetch(row + 64);
      return;
    }
  }

  /// @pre the table has a key at `row`
  /// @returns false if the same key has a row
  bool insert(row_t row) {
    const auto& key = table_[row].key;
    const auto hash = hash_of(key);
    if (find(key, hash))
      return false;
    if ((size_ + 1) * 2 > buckets_.size())
      grow();
    place({tag_of(hash), row}, hash);
    ++size_;
    return true;
  }

  /// @pre the index has `row`, and the table still has the key there
  void erase(row_t row) {
    auto hole = hash_of(table_[row].key) & mask();
    while (buckets_[hole].row != row)
      hole = next(hole);
    // Closes the gap, so that every run of buckets stays without holes.
    for (auto at = next(hole); buckets_[at].row != none; at = next(at)) {
      const auto home = hash_of(table_[buckets_[at].row].key) & mask();
      if (((at - home) & mask()) < ((at - hole) & mask()))
        continue;
      buckets_[hole] = buckets_[at];
      hole = at;
    }
    buckets_[hole] = {};
    --size_;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return size_;
  }

  void clear() {
    buckets_.clear();
    size_ = 0;
  }

private:
  static constexpr auto none = std::numeric_limits<row_t>::max();

  struct bucket {
    std::uint32_t tag = 0;
    row_t row = none;
  };

  /// The bits that do not choose the bucket.
  static std::uint32_t tag_of(std::size_t hash) noexcept {
    return static_cast<std::uint32_t>(hash >> 32);
  }

  [[nodiscard]] std::size_t mask() const noexcept {
    return buckets_.size() - 1;
  }

  [[nodiscard]] std::size_t next(std::size_t at) const noexcept {
    return (at + 1) & mask();
  }

  void place(bucket what, std::size_t hash) {
    auto at = hash & mask();
    while (buckets_[at].row != none)
      at = next(at);
    buckets_[at] = what;
  }

  void grow() {
    const auto old = std::move(buckets_);
    buckets_ = std::vector<bucket>(old.empty() ? 16 : old.size() * 2);
    for (const auto& what : old)
      if (what.row != none)
        place(what, hash_of(table_[what.row].key));
  }

  const Table& table_;
  std::vector<bucket> buckets_;
  std::size_t size_ = 0;
};

} // namespace kvtide::core
