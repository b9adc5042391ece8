// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the thread of a rank may do: each call is a message, or nothing.

#include "actors/rank_impl.hpp"

#include <string>
#include <utility>
#include <vector>

namespace kvtide {

namespace {

/// Nobody made such an event: the call had no effect.
error no_host_events() {
  return {ec::unsupported,
          "with device_kind::cuda events come from record_event: make_event "
          "and complete_event are for device_kind::host"};
}

} // namespace

rank::rank(std::unique_ptr<impl> ptr) noexcept : impl_(std::move(ptr)) {
  // nop
}

rank::~rank() = default;

void rank::register_kv(kv_memory memory) {
  impl_->guarded([&] { impl_->send(msg::register_kv{std::move(memory)}); });
}

void rank::unregister_kv() {
  impl_->guarded([&] { impl_->send(msg::unregister_kv{}); });
}

void rank::begin_step(step_id step, std::string plan) {
  impl_->guarded([&] {
    // G6: what compute waits for must not become part of a graph.
    if (auto refused = impl_->compute->check_not_capturing();
        refused.code != ec::none)
      return impl_->queue->push(rank_failed{impl_->id, std::move(refused)});
    impl_->send(msg::await_step{step, std::move(plan)});
  });
}

void rank::end_step(step_id step, compute_events events) {
  impl_->guarded([&] {
    if (events.empty()) {
      // Silence must not mean that compute is over: copies would overtake it.
      auto recorded = impl_->compute->record_all();
      if (!recorded)
        return impl_->queue->push(rank_failed{impl_->id, recorded.failure()});
      events = std::move(recorded).value();
    }
    impl_->send(msg::end_step{step, std::move(events)});
  });
}

void rank::get_stats() {
  impl_->guarded([&] { impl_->send(msg::get_rank_stats{}); });
}

result<std::uint64_t> rank::make_event() {
  const auto inside = impl_->caller->enter();
  if (!inside)
    return core::second_thread("rank");
  if (impl_->kind == device_kind::cuda)
    return no_host_events();
  return impl_->events->create();
}

void rank::complete_event(std::uint64_t handle) {
  if (impl_->kind == device_kind::cuda)
    impl_->queue->push(rank_failed{impl_->id, no_host_events()});
  else
    impl_->events->complete(handle);
}

result<std::uint64_t> rank::record_event(std::uint64_t stream) {
  const auto inside = impl_->caller->enter();
  if (!inside)
    return core::second_thread("rank");
  if (impl_->kind != device_kind::cuda)
    return error{ec::unsupported,
                 "record_event is for device_kind::cuda: with "
                 "device_kind::host use make_event and complete_event"};
  // Without a cache nothing waits for it.
  if (impl_->stand_in)
    return std::uint64_t{1};
  return impl_->compute->record(stream);
}

std::vector<rank_event> rank::poll() {
  auto out = std::vector<rank_event>{};
  impl_->guarded([&] { out = impl_->queue->poll(); });
  return out;
}

std::vector<rank_event> rank::poll_in_wait() {
  return impl_->queue->poll();
}

int rank::event_fd() const noexcept {
  return impl_->queue->ready().get();
}

bool rank::wait(std::chrono::milliseconds timeout) const {
  return impl_->queue->wait(timeout);
}

} // namespace kvtide
