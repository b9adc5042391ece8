// SPDX-License-Identifier: Apache-2.0

#include "actors/cuda_seat.hpp"

#include <string>
#include <utility>

namespace kvtide {

result<std::shared_ptr<gpu::pool_registration>> shared_pins::get(int device) {
  const std::lock_guard lock{mutex_};
  if (made_)
    return made_;
  auto made = gpu::pool_registration::make(device);
  if (made)
    made_ = made.value();
  return made;
}

result<gpu::cuda_seat> seat_for(const kv_memory& memory,
                                const std::optional<gpu::cuda_seat>& before,
                                const std::shared_ptr<shared_pins>& shared) {
  if (memory.streams.empty())
    // Nothing would tell the copies when compute has ended (S6, G6).
    return error{ec::invalid_argument,
                 "kv_memory::streams is empty: name every stream on which the "
                 "rank computes"};
  if (before) {
    if (before->device() == memory.device)
      return *before;
    return error{ec::invalid_argument,
                 "kv_memory::device was " + std::to_string(before->device())
                   + " before and is now " + std::to_string(memory.device)
                   + ": register on the same GPU, or start a new runtime"};
  }
  if (!shared)
    return gpu::cuda_seat::make(memory.device);
  auto pins = shared->get(memory.device);
  if (!pins)
    return pins.failure();
  return gpu::cuda_seat::make(memory.device, std::move(pins).value());
}

compute_calls calls_of(const gpu::cuda_seat& seat,
                       const std::vector<std::uint64_t>& streams) {
  auto out = compute_calls{};
  out.record = [events = seat.events()](std::uint64_t stream) {
    return events->record(stream);
  };
  out.record_all
    = [events = seat.events(), streams]() -> result<compute_events> {
    auto made = compute_events{};
    for (const auto stream : streams) {
      auto one = events->record(stream);
      if (!one)
        return one.failure();
      made.push_back(one.value());
    }
    return made;
  };
  out.check_not_capturing = [events = seat.events(), streams] {
    return events->check_not_capturing(streams);
  };
  return out;
}

} // namespace kvtide
