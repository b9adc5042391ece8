// SPDX-License-Identifier: Apache-2.0

#include "actors/compute_side.hpp"

#include <utility>

namespace kvtide {

void compute_side::open(compute_calls calls) {
  auto added = std::make_shared<const compute_calls>(std::move(calls));
  const std::lock_guard lock{mutex_};
  calls_.swap(added); // The old ones go outside of the lock.
}

void compute_side::close() {
  auto dropped = std::shared_ptr<const compute_calls>{};
  const std::lock_guard lock{mutex_};
  calls_.swap(dropped);
}

void compute_side::lose(error why) {
  close();
  const std::lock_guard lock{mutex_};
  lost_ = std::move(why);
}

result<std::uint64_t> compute_side::record(std::uint64_t stream) const {
  if (const auto there = calls())
    return there->record(stream);
  if (auto why = lost(); why.code != ec::none)
    return why;
  return error{ec::out_of_order,
               "no memory is registered on a GPU: call register_kv and await "
               "its answer before record_event"};
}

error compute_side::check_not_capturing() const {
  const auto there = calls();
  return there ? there->check_not_capturing() : error{};
}

error compute_side::lost() const {
  const std::lock_guard lock{mutex_};
  return lost_;
}

std::shared_ptr<const compute_calls> compute_side::calls() const {
  const std::lock_guard lock{mutex_};
  return calls_;
}

} // namespace kvtide
