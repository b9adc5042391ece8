// SPDX-License-Identifier: Apache-2.0

#include "core/key_list.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::core {

namespace {

constexpr auto whole = key_view::segment_keys;

/// Room of a new segment: who decodes fills it slowly.
constexpr auto least_room = std::size_t{16};

/// A new list with room for more than `kept` values, which it starts with.
template <class T>
std::shared_ptr<T[]> list_of(const std::shared_ptr<T[]>& values,
                             std::size_t kept, std::size_t room) {
  auto out = std::make_shared<T[]>(room);
  std::copy_n(values.get(), kept, out.get());
  return out;
}

} // namespace

key_view::segment key_list::renew(const key_view::segment& old,
                                  std::size_t kept, std::size_t room) {
  return {list_of(old.hashes, kept, room), list_of(old.digests, kept, room)};
}

void key_list::append(const prefix_hash& hash) {
  if (size_ == room_)
    grow();
  const auto& last = (*segments_)[size_ / whole];
  last.hashes[size_ % whole] = hash;
  last.digests[size_ % whole] = digest_of(hash, group_, model_);
  ++size_;
}

void key_list::grow() {
  auto next = segments_ ? *segments_ : key_view::segments{};
  const auto kept = size_ % whole;
  const auto room = kept == 0 ? least_room : 2 * kept;
  if (kept == 0)
    next.push_back(renew({}, 0, room));
  else
    next.back() = renew(next.back(), kept, room);
  room_ = size_ - kept + room;
  segments_ = std::make_shared<key_view::segments>(std::move(next));
}

void key_list::truncate(std::size_t size) {
  if (size >= size_)
    return;
  auto next = *segments_;
  next.resize((size + whole - 1) / whole);
  const auto kept = size % whole;
  // The next key goes where somebody may still read another one.
  if (kept > 0)
    next.back() = renew(next.back(), kept, whole);
  size_ = size;
  room_ = next.size() * whole;
  segments_ = std::make_shared<key_view::segments>(std::move(next));
}

key_view key_list::view() const {
  auto out = key_view{};
  out.segments_ = segments_;
  out.size_ = size_;
  out.group_ = group_;
  out.model_ = model_;
  return out;
}

} // namespace kvtide::core
