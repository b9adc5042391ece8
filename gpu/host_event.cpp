// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_event.hpp"

#include <cstddef>
#include <string>

namespace kvtide::gpu {

namespace {

// A handle is the generation in the upper half and the place, counted from one,
// in the lower half.

std::uint64_t make_handle(std::uint32_t index, std::uint32_t generation) {
  return (std::uint64_t{generation} << 32) | (std::uint64_t{index} + 1);
}

std::size_t index_of(std::uint64_t handle) {
  return static_cast<std::size_t>(handle & 0xffff'ffffu) - 1;
}

std::uint32_t generation_of(std::uint64_t handle) {
  return static_cast<std::uint32_t>(handle >> 32);
}

} // namespace

host_event_table::host_event_table(std::uint32_t capacity) : places_(capacity) {
  free_.reserve(capacity);
  for (auto i = capacity; i > 0; --i)
    free_.push_back(i - 1);
}

result<std::uint64_t> host_event_table::create() {
  const std::lock_guard lock{mutex_};
  if (free_.empty())
    return error{ec::out_of_memory,
                 "all " + std::to_string(places_.size())
                   + " compute events are pending: complete some first"};
  const auto index = free_.back();
  free_.pop_back();
  auto& entry = places_[index];
  ++entry.generation;
  entry.pending = true;
  return make_handle(index, entry.generation);
}

bool host_event_table::complete(std::uint64_t handle) {
  {
    const std::lock_guard lock{mutex_};
    if (state_locked(handle) != event_state::pending)
      return false;
    const auto index = index_of(handle);
    places_[index].pending = false;
    // A place whose generations are used up stays out of use: its next handle
    // would be an old one.
    if (places_[index].generation != 0xffff'ffffu)
      free_.push_back(static_cast<std::uint32_t>(index));
  }
  completed_.notify_all();
  return true;
}

event_state host_event_table::state(std::uint64_t handle) const {
  const std::lock_guard lock{mutex_};
  return state_locked(handle);
}

bool host_event_table::wait(std::uint64_t handle, std::stop_token stop) {
  std::unique_lock lock{mutex_};
  completed_.wait(lock, stop, [this, handle] {
    return state_locked(handle) != event_state::pending;
  });
  return state_locked(handle) == event_state::complete;
}

std::uint32_t host_event_table::pending() const {
  const std::lock_guard lock{mutex_};
  std::uint32_t count = 0;
  for (const auto& entry : places_)
    count += entry.pending ? 1 : 0;
  return count;
}

event_state host_event_table::state_locked(std::uint64_t handle) const {
  const auto index = index_of(handle);
  if (index >= places_.size())
    return event_state::unknown;
  const auto& entry = places_[index];
  const auto generation = generation_of(handle);
  if (generation == 0 || generation > entry.generation)
    return event_state::unknown;
  return generation == entry.generation && entry.pending
         ? event_state::pending
         : event_state::complete;
}

} // namespace kvtide::gpu
