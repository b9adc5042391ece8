// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace kvtide::core {

/// A map from job ids. These ascend by one, so that the last digits of an id
/// are its place: no hash, and in the steady state no allocation.
template <class T>
class job_window {
public:
  /// Null if it is not there.
  [[nodiscard]] T* find(job_id id) noexcept {
    auto& x = places_[place_of(id)];
    return x.taken && x.id == id ? &x.value : nullptr;
  }

  [[nodiscard]] const T* find(job_id id) const noexcept {
    const auto& x = places_[place_of(id)];
    return x.taken && x.id == id ? &x.value : nullptr;
  }

  /// Replaces what is there.
  T& insert(job_id id, T value) {
    while (places_[place_of(id)].taken && places_[place_of(id)].id != id)
      grow();
    auto& x = places_[place_of(id)];
    x = {id, true, std::move(value)};
    return x.value;
  }

  /// Ignores ids that are not there.
  void erase(job_id id) noexcept {
    if (find(id) != nullptr)
      places_[place_of(id)].taken = false;
  }

private:
  struct place {
    job_id id = 0;
    bool taken = false;
    T value{};
  };

  [[nodiscard]] std::size_t place_of(job_id id) const noexcept {
    return static_cast<std::size_t>(id) & (places_.size() - 1);
  }

  /// Two ids that met do not meet in twice the room, or in twice that.
  void grow() {
    auto old = std::vector<place>(2 * places_.size());
    old.swap(places_);
    for (auto& x : old)
      if (x.taken)
        places_[place_of(x.id)] = std::move(x);
  }

  /// Their number is a power of two.
  std::vector<place> places_ = std::vector<place>(64);
};

} // namespace kvtide::core
