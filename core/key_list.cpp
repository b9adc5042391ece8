// SPDX-License-Identifier: Apache-2.0

#include "core/key_list.hpp"

namespace kvtide::core {

void key_list::append(const prefix_hash& hash) {
  const auto place = size_ % key_view::segment_keys;
  if (place == 0)
    segments_.push_back(std::make_shared<key_view::segment>());
  (*segments_.back())[place] = hash;
  ++size_;
}

void key_list::truncate(std::size_t size) {
  if (size >= size_)
    return;
  size_ = size;
  segments_.resize((size + key_view::segment_keys - 1)
                   / key_view::segment_keys);
  if (size % key_view::segment_keys != 0)
    segments_.back() = std::make_shared<key_view::segment>(*segments_.back());
}

key_view key_list::view() const {
  auto out = key_view{};
  out.segments_.assign(segments_.begin(), segments_.end());
  out.size_ = size_;
  out.group_ = group_;
  out.model_ = model_;
  return out;
}

} // namespace kvtide::core
