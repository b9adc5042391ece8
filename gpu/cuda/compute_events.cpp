// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/compute_events.hpp"

#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/devices.hpp"
#include "gpu/cuda/event.hpp"

#include <deque>
#include <mutex>
#include <string>
#include <utility>

namespace kvtide::gpu {

namespace {

constexpr std::uint32_t most_events = 65'536;

/// Zero is nobody's handle.
std::uint64_t handle_of(std::uint32_t index, std::uint32_t generation) {
  return (std::uint64_t{generation} << 32) | (index + 1);
}

error capture_error() {
  return {ec::out_of_order,
          "the compute stream is being captured into a graph: begin or end the "
          "step outside of the capture, and launch the graph in the step"};
}

} // namespace

struct compute_events::impl {
  struct place {
    cuda_event what;
    std::uint32_t generation = 0;
    bool pending = false;
  };

  int device = 0;
  std::uint32_t capacity = 0;
  mutable std::mutex mutex;
  std::vector<place> places;
  /// In the order of their records, oldest first.
  std::deque<std::uint32_t> pending;
  std::vector<std::uint32_t> free;

  // -- called with the lock held and the device current -----------------------

  /// The events before one that is pending are looked at when it ends.
  void collect() {
    while (!pending.empty()) {
      auto& oldest = places[pending.front()];
      const auto status = ::cudaEventQuery(oldest.what.get());
      ignore(status);
      if (status != cudaSuccess) // An error says nothing about the work.
        break;
      oldest.pending = false;
      ++oldest.generation;
      free.push_back(pending.front());
      pending.pop_front();
    }
  }

  result<std::uint32_t> take() {
    if (free.empty())
      collect();
    if (free.empty() && places.size() < capacity) {
      auto made = make_event();
      if (!made)
        return made.failure();
      free.push_back(static_cast<std::uint32_t>(places.size()));
      places.push_back({std::move(made).value(), 1, false});
    }
    if (free.empty())
      return error{ec::out_of_memory,
                   std::to_string(capacity)
                     + " compute events are pending: the device is further "
                       "behind than a step should ever be; wait for it before "
                       "the next step"};
    const auto index = free.back();
    free.pop_back();
    return index;
  }

  /// Null if complete.
  /// @pre `known(handle)`
  const place* pending_place(std::uint64_t handle) const {
    const auto& found = places[(handle & 0xffff'ffffu) - 1];
    return found.pending && found.generation == handle >> 32 ? &found : nullptr;
  }

  bool known(std::uint64_t handle) const {
    const auto index = handle & 0xffff'ffffu;
    if (index == 0 || index > places.size())
      return false;
    const auto& found = places[index - 1];
    const auto generation = handle >> 32;
    return generation != 0
        && (generation < found.generation
            || (generation == found.generation && found.pending));
  }
};

result<std::shared_ptr<compute_events>>
compute_events::make(int device, std::uint32_t capacity) {
  if (capacity == 0 || capacity > most_events)
    return error{ec::invalid_argument,
                 "the number of compute events must be 1 to 65,536"};
  if (auto failed = check_device(device); failed.code != ec::none)
    return failed;
  auto made = std::make_unique<impl>();
  made->device = device;
  made->capacity = capacity;
  return std::shared_ptr<compute_events>{new compute_events{std::move(made)}};
}

compute_events::compute_events(std::unique_ptr<impl> ptr) noexcept
  : impl_(std::move(ptr)) {
  // nop
}

compute_events::~compute_events() {
  const device_scope scope{impl_->device};
  impl_->places.clear();
}

result<std::uint64_t> compute_events::record(std::uint64_t stream) {
  const device_scope scope{impl_->device};
  if (auto refused = check_not_capturing({stream}); refused.code != ec::none)
    return refused;
  const std::lock_guard lock{impl_->mutex};
  auto taken = impl_->take();
  if (!taken)
    return taken.failure();
  const auto index = taken.value();
  auto& place = impl_->places[index];
  const auto status = ::cudaEventRecord(place.what.get(), to_stream(stream));
  if (auto failed = check("cudaEventRecord", status); failed.code != ec::none) {
    impl_->free.push_back(index);
    if (status == cudaErrorInvalidResourceHandle)
      return error{ec::invalid_argument, "the compute stream is none of device "
                                           + std::to_string(impl_->device)
                                           + ": " + failed.text};
    return failed;
  }
  place.pending = true;
  impl_->pending.push_back(index);
  return handle_of(index, place.generation);
}

error compute_events::check_not_capturing(
  const std::vector<std::uint64_t>& streams) const {
  const device_scope scope{impl_->device};
  for (const auto handle : streams) {
    auto status = cudaStreamCaptureStatusNone;
    auto failed = check("cudaStreamIsCapturing",
                        ::cudaStreamIsCapturing(to_stream(handle), &status));
    if (failed.code != ec::none)
      return failed;
    if (status != cudaStreamCaptureStatusNone)
      return capture_error();
  }
  return {};
}

bool compute_events::knows(std::uint64_t handle) const {
  const std::lock_guard lock{impl_->mutex};
  return impl_->known(handle);
}

event_state compute_events::state(std::uint64_t handle) const {
  const device_scope scope{impl_->device};
  const std::lock_guard lock{impl_->mutex};
  if (!impl_->known(handle))
    return event_state::unknown;
  const auto* place = impl_->pending_place(handle);
  if (place == nullptr)
    return event_state::complete;
  const auto status = ::cudaEventQuery(place->what.get());
  ignore(status);
  return status == cudaSuccess ? event_state::complete : event_state::pending;
}

error compute_events::wait(stream_handle stream, std::uint64_t handle) const {
  // Under the lock: the event is not recorded anew between look and wait.
  const std::lock_guard lock{impl_->mutex};
  if (!impl_->known(handle))
    return {ec::invalid_argument,
            "compute event " + std::to_string(handle) + " was never recorded"};
  const auto* place = impl_->pending_place(handle);
  if (place == nullptr)
    return {};
  return check("cudaStreamWaitEvent",
               ::cudaStreamWaitEvent(stream, place->what.get(), 0));
}

void compute_events::abandon() {
  const std::lock_guard lock{impl_->mutex};
  for (auto& place : impl_->places)
    place.what.release();
}

} // namespace kvtide::gpu
