// SPDX-License-Identifier: Apache-2.0

/// @file
/// Spawns everything and hands calls over. The only file that knows all actors.

#include "kvtide/waiting.hpp"

#include "actors/network.hpp"
#include "actors/rank_door.hpp"
#include "actors/runtime_impl.hpp"
#include "core/rules.hpp"
#include "core/worker_places.hpp"

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>

#include <algorithm>
#include <cassert>
#include <string>

namespace kvtide {

namespace {

/// A span of time that a call may name.
nanoseconds_t bounded(std::chrono::milliseconds span) {
  return std::chrono::nanoseconds{bounded_wait(span)}.count();
}

/// The ranks of this process.
std::vector<rank_id> ranks_here(const options& opts) {
  auto out = std::vector<rank_id>{};
  for (rank_id id = 0; id < opts.ranks; ++id)
    if (core::is_here(opts, id))
      out.push_back(id);
  return out;
}

} // namespace

runtime::impl::~impl() {
  using caf::exit_reason;
  // Whoever is let in now would find nobody.
  if (opened)
    opts.network->close();
  caf::anon_send_exit(door, exit_reason::user_shutdown);
  caf::anon_send_exit(scheduler, exit_reason::user_shutdown);
  caf::anon_send_exit(cache, exit_reason::user_shutdown);
  caf::anon_send_exit(port, exit_reason::user_shutdown);
}

void runtime::impl::start_without_cache() {
  stand_in.emplace(opts, queue, caller);
  for (const auto& one : ranks) {
    auto& seat = *one->impl_;
    seat.stand_in.emplace(seat.id, opts, seat.queue, seat.caller);
  }
}

void runtime::impl::start_actors() {
  const auto any_elsewhere = core::any_elsewhere(opts);
  start_system(any_elsewhere ? opts.network.get() : nullptr);
  if (any_elsewhere)
    epoch = random_life();
  port = system->spawn(engine_port, queue, caller);
  cache = system->spawn(cache_manager, cache_manager_config{shape, opts});
  scheduler
    = system->spawn(kvtide::scheduler, scheduler_config{shape, opts, {}, epoch},
                    cache, caf::actor_cast<engine_actor>(port));
  caf::anon_send(port, msg::watch_scheduler{
                         caf::actor_cast<caf::strong_actor_ptr>(scheduler)});
  for (const auto& one : ranks)
    if (one != nullptr)
      start_worker(*one->impl_);
  forget_system();
}

error runtime::impl::open_door() {
  if (!core::any_elsewhere(opts))
    return {};
  auto door_options = rank_door_config{};
  door_options.opts = opts;
  door_options.scheduler = caf::actor_cast<scheduler_worker_port>(scheduler);
  door_options.epoch = epoch;
  door = system->spawn(rank_door, std::move(door_options));
  auto fault
    = opts.network->open_door(*system, door, core::dialed_addresses(opts));
  forget_system();
  opened = fault.code == ec::none;
  return fault;
}

void runtime::impl::start_worker(rank::impl& seat) {
  start_rank(seat, worker_config_of(opts, seat.id, seat.incarnation),
             caf::actor_cast<scheduler_worker_port>(scheduler));
}

result<runtime> runtime::start(const options& opts) {
  auto made = core::make_layout(opts);
  if (!made.ok())
    return made.failure();
  if (auto refused = core::fault_of_workers(opts); refused.code != ec::none)
    return refused;
  const auto here = ranks_here(opts);
  if (auto refused
      = fault_of_machine(opts, static_cast<std::uint32_t>(here.size()));
      refused.code != ec::none)
    return refused;
  auto ready = ready_fd::create();
  if (!ready.ok())
    return ready.failure();
  auto out = std::make_unique<impl>(opts);
  out->shape = std::make_shared<const core::layout>(std::move(made).value());
  out->queue = std::make_shared<engine_queue>(std::move(ready).value());
  if (auto refused = out->make_ranks(here); refused.code != ec::none)
    return refused;
  if (opts.host_bytes == 0) {
    out->start_without_cache();
    return runtime{std::move(out)};
  }
  out->start_actors();
  if (auto refused = out->open_door(); refused.code != ec::none)
    return refused;
  return runtime{std::move(out)};
}

runtime::runtime(std::unique_ptr<impl> ptr) noexcept : impl_(std::move(ptr)) {
  // nop
}

runtime::runtime(runtime&&) noexcept = default;

runtime& runtime::operator=(runtime&&) noexcept = default;

runtime::~runtime() = default;

ticket_id runtime::add(add_request call) {
  return impl_->send(msg::add{0, std::move(call)});
}

ticket_id runtime::extend(extend_keys call) {
  return impl_->send(msg::extend{0, std::move(call)});
}

ticket_id runtime::lookup(std::vector<lookup_row> rows) {
  return impl_->send(msg::lookup{0, std::move(rows)});
}

ticket_id runtime::decline(promise_id promise) {
  return impl_->send(msg::decline{0, promise});
}

ticket_id runtime::allocate(allocated call) {
  return impl_->send(msg::allocate{0, std::move(call)});
}

ticket_id runtime::finish(finish_call call) {
  return impl_->send(msg::finish{0, call});
}

ticket_id runtime::truncate(truncate_call call) {
  return impl_->send(msg::truncate{0, call});
}

ticket_id runtime::step(step_call call) {
  return impl_->send(msg::step{0, std::move(call)});
}

ticket_id runtime::outputs(outputs_call call) {
  return impl_->send(msg::outputs{0, std::move(call)});
}

ticket_id runtime::reset() {
  return impl_->send(msg::reset{});
}

ticket_id runtime::take_events() {
  return impl_->send(msg::take_events{});
}

ticket_id runtime::get_stats() {
  return impl_->send(msg::get_stats{});
}

ticket_id runtime::explain(request_id request) {
  return impl_->send(msg::explain{0, request});
}

ticket_id runtime::sleep(std::chrono::milliseconds deadline) {
  return impl_->send(msg::sleep{0, bounded(deadline)});
}

ticket_id runtime::wake() {
  return impl_->send(msg::wake{});
}

ticket_id runtime::shutdown(std::chrono::milliseconds deadline) {
  return impl_->send(msg::shutdown{0, bounded(deadline)});
}

ticket_id runtime::advance(nanoseconds_t now) {
  const auto inside = impl_->caller->enter();
  if (!inside)
    return impl_->refuse();
  // A rank that is restarted begins where the others are.
  const auto refused
    = core::fault_of_advance(impl_->opts.device, impl_->now, now);
  if (refused.code == ec::none)
    impl_->now = now;
  return impl_->send_inside(msg::advance{0, now});
}

std::vector<engine_event> runtime::poll() {
  if (const auto inside = impl_->caller->enter())
    return impl_->queue->poll();
  impl_->refuse();
  return {};
}

std::vector<engine_event> runtime::poll_in_wait() {
  return impl_->queue->poll();
}

int runtime::event_fd() const noexcept {
  return impl_->queue->ready().get();
}

bool runtime::wait(std::chrono::milliseconds timeout) const {
  return impl_->queue->wait(timeout);
}

error runtime::restart_rank(rank_id id) {
  const auto inside = impl_->caller->enter();
  if (!inside)
    return core::second_thread("runtime");
  if (id >= impl_->ranks.size())
    return {ec::invalid_argument, "rank " + std::to_string(id)
                                    + " does not exist; there are "
                                    + std::to_string(impl_->ranks.size())};
  auto* seat = impl_->find(id);
  if (seat == nullptr)
    return {ec::invalid_argument,
            "rank " + std::to_string(id)
              + " lives in another process: call worker::restart_rank there"};
  return impl_->serves() ? impl_->restart(*seat) : core::no_scheduler();
}

rank& runtime::local_rank(rank_id id) {
  assert(impl_->find(id) != nullptr && "no such rank in this process");
  return *impl_->ranks[id];
}

} // namespace kvtide
