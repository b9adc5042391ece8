// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include "core/key_ref.hpp"

#include <tsl/robin_set.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kvtide::core {

/// Finds the row of a table that has a given key. Keeps row numbers and
/// digests only: the keys stay in the table, where they are read as
/// `table[row].key`.
template <class Table>
class key_index {
public:
  using row_t = std::uint32_t;

  /// `table` must outlive the index and stay at its address.
  explicit key_index(const Table& table)
    : table_(table),
      rows_(0, row_hash{&digests_}, row_equal{&table, &digests_}) {
    // nop
  }

  key_index(const key_index&) = delete;
  key_index& operator=(const key_index&) = delete;

  [[nodiscard]] std::optional<row_t> find(const key_ref& key) const {
    return found(rows_.find(key, key.digest));
  }

  /// A row whose key has this digest: in all likelihood the one that is meant,
  /// and found without a look at the table.
  [[nodiscard]] std::optional<row_t>
  find_by_digest(std::uint64_t digest) const {
    return found(rows_.find(just_digest{digest}, digest));
  }

  /// @pre the index has, or had, `row`
  [[nodiscard]] std::uint64_t digest_at(row_t row) const noexcept {
    return digests_[row];
  }

  /// @pre the table has a key at `row`
  /// @returns false if the same key has a row
  bool insert(row_t row) {
    if (row >= digests_.size())
      digests_.resize(std::size_t{row} + 1);
    digests_[row] = key_ref{table_[row].key}.digest;
    return rows_.insert(row).second;
  }

  /// @pre the index has `row`, and the table still has the key there
  void erase(row_t row) {
    rows_.erase(row, digests_[row]);
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return rows_.size();
  }

  void clear() {
    rows_.clear();
  }

private:
  struct just_digest {
    std::uint64_t value;
  };

  struct row_hash {
    const std::vector<std::uint64_t>* digests;

    std::size_t operator()(const key_ref& key) const noexcept {
      return key.digest;
    }

    std::size_t operator()(just_digest digest) const noexcept {
      return digest.value;
    }

    std::size_t operator()(row_t row) const noexcept {
      return (*digests)[row];
    }
  };

  struct row_equal {
    using is_transparent = void;

    const Table* table;
    const std::vector<std::uint64_t>* digests;

    bool operator()(row_t x, row_t y) const noexcept {
      return x == y || (*table)[x].key == (*table)[y].key;
    }

    bool operator()(row_t row, const key_ref& key) const noexcept {
      return key == (*table)[row].key;
    }

    bool operator()(const key_ref& key, row_t row) const noexcept {
      return key == (*table)[row].key;
    }

    bool operator()(row_t row, just_digest digest) const noexcept {
      return (*digests)[row] == digest.value;
    }

    bool operator()(just_digest digest, row_t row) const noexcept {
      return (*digests)[row] == digest.value;
    }
  };

  // Part of the digest is kept beside its row, so that few keys are compared.
  static constexpr bool store_hash = true;

  using rows = tsl::robin_set<row_t, row_hash, row_equal, std::allocator<row_t>,
                              store_hash>;

  [[nodiscard]] std::optional<row_t>
  found(typename rows::const_iterator i) const {
    return i != rows_.end() ? std::optional{*i} : std::nullopt;
  }

  const Table& table_;
  /// By row.
  std::vector<std::uint64_t> digests_;
  rows rows_;
};

} // namespace kvtide::core
