// SPDX-License-Identifier: Apache-2.0

#include "core/linked_keys.hpp"

namespace kvtide::core {

std::uint32_t linked_keys::number(const chunk_key& key) const {
  const auto row = index_.find(key);
  return row ? nodes_[*row].number : 0;
}

std::uint32_t& linked_keys::push_newest(const chunk_key& key) {
  if (const auto row = index_.find(key)) {
    order_.move_to_newest(*row);
    return nodes_[*row].number;
  }
  auto row = static_cast<std::uint32_t>(nodes_.size());
  if (unused_.empty()) {
    nodes_.push_back({key, 0});
  } else {
    row = unused_.back();
    unused_.pop_back();
    nodes_[row] = {key, 0};
  }
  index_.insert(row);
  order_.push_newest(row);
  return nodes_[row].number;
}

void linked_keys::erase(const chunk_key& key) {
  if (const auto row = index_.find(key))
    drop(*row);
}

void linked_keys::shorten(std::size_t size) {
  while (order_.size() > size)
    drop(order_.oldest());
}

void linked_keys::clear() {
  nodes_.clear();
  unused_.clear();
  index_.clear();
  order_.clear();
}

std::vector<chunk_key> linked_keys::keys() const {
  auto out = std::vector<chunk_key>{};
  out.reserve(order_.size());
  for (auto row = order_.oldest(); row != slot_list::none;
       row = order_.newer(row))
    out.push_back(nodes_[row].key);
  return out;
}

void linked_keys::drop(std::uint32_t row) {
  index_.erase(row);
  order_.erase(row);
  unused_.push_back(row);
}

} // namespace kvtide::core
