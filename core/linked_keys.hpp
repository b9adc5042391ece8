// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include "core/key_index.hpp"
#include "core/slot_list.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide::core {

/// A set of keys in an order from the oldest to the newest, each with a number.
/// Every operation is O(1).
class linked_keys {
public:
  linked_keys() = default;

  linked_keys(const linked_keys&) = delete;
  linked_keys& operator=(const linked_keys&) = delete;

  [[nodiscard]] std::size_t size() const noexcept {
    return index_.size();
  }

  [[nodiscard]] bool contains(const key_ref& key) const {
    return index_.find(key).has_value();
  }

  /// The key's number; zero if absent.
  [[nodiscard]] std::uint32_t number(const chunk_key& key) const;

  /// Puts the key at the newest end, with number 0 if it is new.
  /// @returns its number, to be changed until the next call
  std::uint32_t& push_newest(const chunk_key& key);

  /// Ignores keys that are absent.
  void erase(const chunk_key& key);

  /// Drops the oldest keys until at most `size` are left.
  void shorten(std::size_t size);

  void clear();

  /// From the oldest to the newest.
  [[nodiscard]] std::vector<chunk_key> keys() const;

private:
  struct node {
    chunk_key key;
    std::uint32_t number = 0;
  };

  void drop(std::uint32_t row);

  std::vector<node> nodes_;
  std::vector<std::uint32_t> unused_;
  key_index<std::vector<node>> index_{nodes_};
  slot_list order_;
};

} // namespace kvtide::core
