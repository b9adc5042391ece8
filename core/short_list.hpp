// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <span>
#include <utility>

namespace kvtide::core {

/// A vector whose first `Room` elements lie in itself: what every step touches
/// of a request then lies side by side, and a message that tells of one chunk
/// allocates nothing for it (docs/performance.md).
template <class T, std::size_t Room>
class short_list : public boost::container::small_vector<T, Room> {
public:
  using base = boost::container::small_vector<T, Room>;
  using base::base;

  short_list() = default;
  short_list(const short_list&) = default;
  short_list& operator=(const short_list&) = default;

  // Elements that move never throw; else a vector of lists would copy them.
  short_list(short_list&& x) noexcept : base(std::move(static_cast<base&>(x))) {
    // nop
  }

  short_list& operator=(short_list&& x) noexcept {
    base::operator=(std::move(static_cast<base&>(x)));
    return *this;
  }

  // As a std::vector is one.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::span<T>() noexcept {
    return {this->data(), this->size()};
  }

  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::span<const T>() const noexcept {
    return {this->data(), this->size()};
  }
};

/// One per KV cache group, in configured order. Most models have full attention
/// alone, or beside one sliding window.
template <class T>
using per_group = short_list<T, 2>;

} // namespace kvtide::core
