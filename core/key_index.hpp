// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include "core/key_hash.hpp"

#include <tsl/robin_set.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace kvtide::core {

/// Finds the row of a table that has a given key. Keeps row numbers only: the
/// keys stay in the table, where they are read as `table[row].key`.
template <class Table>
class key_index {
public:
  using row_t = std::uint32_t;

  /// `table` must outlive the index and stay at its address.
  explicit key_index(const Table& table)
    : rows_(0, row_hash{&table}, row_equal{&table}) {
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
    const auto i = rows_.find(key, hash);
    return i != rows_.end() ? std::optional{*i} : std::nullopt;
  }

  /// @pre the table has a key at `row`
  /// @returns false if the same key has a row
  bool insert(row_t row) {
    return rows_.insert(row).second;
  }

  /// @pre the index has `row`, and the table still has the key there
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
  struct row_hash {
    const Table* table;

    std::size_t operator()(const chunk_key& key) const noexcept {
      return key_hash{}(key);
    }

    std::size_t operator()(row_t row) const noexcept {
      return key_hash{}((*table)[row].key);
    }
  };

  struct row_equal {
    using is_transparent = void;

    const Table* table;

    bool operator()(row_t x, row_t y) const noexcept {
      return (*table)[x].key == (*table)[y].key;
    }

    bool operator()(row_t row, const chunk_key& key) const noexcept {
      return (*table)[row].key == key;
    }

    bool operator()(const chunk_key& key, row_t row) const noexcept {
      return (*table)[row].key == key;
    }
  };

  // Each hash is kept beside its row, so that few keys are compared.
  static constexpr bool store_hash = true;

  tsl::robin_set<row_t, row_hash, row_equal, std::allocator<row_t>, store_hash>
    rows_;
};

} // namespace kvtide::core
