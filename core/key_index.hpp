// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include "core/key_hash.hpp"

#include <tsl/robin_set.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace kvtide::core {

/// Finds the row of a table that has a given key. Keeps row numbers only: the
/// keys stay in the table, where they are read as `table[row].key`.
template <class Table>
class key_index {
public:
  using row_t = std::uint32_t;

  /// `table` must outlive the index and stay at its address.
  explicit key_index(const Table& table)
    : rows_(0, hash_t{&table}, equal_t{&table}) {
    // nop
  }

  [[nodiscard]] std::optional<row_t> find(const chunk_key& key) const {
    const auto pos = rows_.find(key);
    return pos != rows_.end() ? std::optional{*pos} : std::nullopt;
  }

  /// @pre the table has a key at `row`
  /// @returns false if the same key has another row
  bool insert(row_t row) {
    return rows_.insert(row).second;
  }

  /// @pre the table still has the key at `row`
  void erase(row_t row) {
    rows_.erase(row);
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return rows_.size();
  }

  void clear() {
    rows_.clear();
  }

private:
  struct hash_t {
    const Table* table;

    std::size_t operator()(const chunk_key& key) const noexcept {
      return key_hash{}(key);
    }

    std::size_t operator()(row_t row) const noexcept {
      return key_hash{}((*table)[row].key);
    }
  };

  struct equal_t {
    using is_transparent = void;

    const Table* table;

    bool operator()(row_t x, row_t y) const noexcept {
      return x == y || (*table)[x].key == (*table)[y].key;
    }

    bool operator()(const chunk_key& x, row_t y) const noexcept {
      return x == (*table)[y].key;
    }

    bool operator()(row_t x, const chunk_key& y) const noexcept {
      return (*table)[x].key == y;
    }
  };

  tsl::robin_set<row_t, hash_t, equal_t, std::allocator<row_t>, true> rows_;
};

} // namespace kvtide::core
