// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include "core/key_hash.hpp"

#include <tsl/robin_set.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kvtide::core {

/// Finds the row of a table that has a given key. Keeps row numbers and hashes
/// only: the keys stay in the table, where they are read as `table[row].key`.
template <class Table>
class key_index {
public:
  using row_t = std::uint32_t;

  /// `table` must outlive the index and stay at its address.
  explicit key_index(const Table& table)
    : table_(table), rows_(0, row_hash{&hashes_}, row_equal{&table, &hashes_}) {
    // nop
  }

  key_index(const key_index&) = delete;
  key_index& operator=(const key_index&) = delete;

  [[nodiscard]] static std::size_t hash_of(const chunk_key& key) noexcept {
    return key_hash{}(key);
  }

  [[nodiscard]] std::optional<row_t> find(const chunk_key& key) const {
    return find(key, hash_of(key));
  }

  /// @pre `hash == hash_of(key)`
  [[nodiscard]] std::optional<row_t> find(const chunk_key& key,
                                          std::size_t hash) const {
    return found(rows_.find(key, hash));
  }

  /// A row whose key has this hash: in all likelihood the one that is meant,
  /// and found without a look at the table.
  [[nodiscard]] std::optional<row_t> find_by_hash(std::size_t hash) const {
    return found(rows_.find(just_hash{hash}, hash));
  }

  /// @pre the index has, or had, `row`
  [[nodiscard]] std::size_t hash_at(row_t row) const noexcept {
    return hashes_[row];
  }

  /// @pre the table has a key at `row`
  /// @returns false if the same key has a row
  bool insert(row_t row) {
    if (row >= hashes_.size())
      hashes_.resize(std::size_t{row} + 1);
    hashes_[row] = hash_of(table_[row].key);
    return rows_.insert(row).second;
  }

  /// @pre the index has `row`, and the table still has the key there
  void erase(row_t row) {
    rows_.erase(row, hashes_[row]);
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return rows_.size();
  }

  void clear() {
    rows_.clear();
  }

private:
  struct just_hash {
    std::size_t value;
  };

  struct row_hash {
    const std::vector<std::size_t>* hashes;

    std::size_t operator()(const chunk_key& key) const noexcept {
      return hash_of(key);
    }

    std::size_t operator()(just_hash hash) const noexcept {
      return hash.value;
    }

    std::size_t operator()(row_t row) const noexcept {
      return (*hashes)[row];
    }
  };

  struct row_equal {
    using is_transparent = void;

    const Table* table;
    const std::vector<std::size_t>* hashes;

    bool operator()(row_t x, row_t y) const noexcept {
      return x == y || (*table)[x].key == (*table)[y].key;
    }

    bool operator()(row_t row, const chunk_key& key) const noexcept {
      return (*table)[row].key == key;
    }

    bool operator()(const chunk_key& key, row_t row) const noexcept {
      return (*table)[row].key == key;
    }

    bool operator()(row_t row, just_hash hash) const noexcept {
      return (*hashes)[row] == hash.value;
    }

    bool operator()(just_hash hash, row_t row) const noexcept {
      return (*hashes)[row] == hash.value;
    }
  };

  // Each hash is kept beside its row, so that few keys are compared.
  static constexpr bool store_hash = true;

  using rows = tsl::robin_set<row_t, row_hash, row_equal, std::allocator<row_t>,
                              store_hash>;

  [[nodiscard]] std::optional<row_t>
  found(typename rows::const_iterator i) const {
    return i != rows_.end() ? std::optional{*i} : std::nullopt;
  }

  const Table& table_;
  /// By row.
  std::vector<std::size_t> hashes_;
  rows rows_;
};

} // namespace kvtide::core
