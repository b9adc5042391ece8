// SPDX-License-Identifier: Apache-2.0

/// @file
/// Spawns everything and hands calls over. The only file that knows all actors,
/// and where scheduler policy, threads and detached actors are chosen.

#include "actors/runtime_impl.hpp"
#include "actors/thread_room.hpp"
#include "core/call_faults.hpp"
#include "core/rules.hpp"
#include "gpu/cuda/devices.hpp"
#include "gpu/cuda_choices.hpp"
#include "gpu/host_memory.hpp"
#include "messages/all.hpp"

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/logger.hpp>

#include <algorithm>
#include <cassert>
#include <string>

namespace kvtide {

namespace {

caf::actor_system_config& prepare(caf::actor_system_config& config,
                                  const options& opts) {
  register_messages(config);
  // Stealing lets an idle thread sleep while work waits; sharing does not.
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", std::size_t{opts.actor_threads});
  config.set("logger.verbosity", caf::atom("quiet"));
  return config;
}

device_config device_of(const options& opts, rank_id rank,
                        std::shared_ptr<gpu::host_event_table> events,
                        std::shared_ptr<compute_side> compute,
                        std::shared_ptr<gpu::host_pool_memory> shared_pool) {
  auto out = device_config{};
  out.kind = opts.device;
  out.groups = static_cast<std::uint32_t>(opts.groups.size());
  out.blocks_per_chunk = static_cast<std::uint32_t>(opts.blocks_per_chunk);
  out.host_bytes = opts.host_bytes;
  out.latency = opts.copy_latency;
  out.bytes_per_second = opts.copy_bytes_per_second;
  out.events = std::move(events);
  out.cuda = opts.cuda;
  out.compute = std::move(compute);
  out.shared_pool = std::move(shared_pool);
  out.pool_name = opts.pool_name;
  out.rank = rank;
  out.order_checks = opts.order_checks;
  return out;
}

error check_memory(const options& opts) {
  const auto there = gpu::physical_memory_bytes();
  if (opts.host_bytes <= there / opts.ranks)
    return {};
  return {ec::out_of_memory,
          "host_bytes: " + std::to_string(opts.host_bytes)
            + " bytes for each of " + std::to_string(opts.ranks)
            + " ranks are more than the " + std::to_string(there)
            + " bytes of memory of this machine; ask for less"};
}

/// Without a cache nobody needs a GPU.
error check_device(const options& opts) {
  if (auto fault = gpu::fault_of(opts.cuda); fault.code != ec::none)
    return fault;
  if (opts.device != device_kind::cuda || opts.host_bytes == 0)
    return {};
  const auto there = gpu::count_devices();
  return there ? error{} : there.failure();
}

/// Those of the actors, of CAF's clock and its printer, with real time one per
/// device, and two more, as what they need of memory is not known exactly.
error check_threads(const options& opts) {
  if (opts.host_bytes == 0)
    return {};
  const auto devices
    = opts.device == device_kind::host_virtual ? 0 : opts.ranks;
  return check_thread_room(opts.actor_threads + 2 + devices + 2);
}

/// A span of time that a call may name.
nanoseconds_t bounded(std::chrono::milliseconds span) {
  using namespace std::chrono;
  return nanoseconds{
    std::clamp<milliseconds>(span, milliseconds{0}, longest_wait)}
    .count();
}

/// Nobody made such an event: the call had no effect.
error no_host_events() {
  return {ec::unsupported,
          "with device_kind::cuda events come from record_event: make_event "
          "and complete_event are for device_kind::host"};
}

} // namespace

// -- rank ---------------------------------------------------------------------

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

// -- runtime ------------------------------------------------------------------

runtime::impl::impl(const options& options_) : opts(options_) {
  // nop
}

runtime::impl::~impl() {
  using caf::exit_reason;
  caf::anon_send_exit(scheduler, exit_reason::user_shutdown);
  caf::anon_send_exit(cache, exit_reason::user_shutdown);
  for (const auto& one : ranks) {
    caf::anon_send_exit(one->impl_->worker, exit_reason::user_shutdown);
    caf::anon_send_exit(one->impl_->device, exit_reason::user_shutdown);
    caf::anon_send_exit(one->impl_->port, exit_reason::user_shutdown);
  }
  caf::anon_send_exit(port, exit_reason::user_shutdown);
  // The system's destructor waits for all of them.
}

void runtime::impl::start_without_cache() {
  stand_in.emplace(opts, queue, caller);
  for (const auto& one : ranks) {
    auto& seat = *one->impl_;
    seat.stand_in.emplace(seat.id, opts, seat.queue, seat.caller);
  }
}

void runtime::impl::start_actors() {
  auto& sys = system.emplace(prepare(config, opts));
  port = sys.spawn(engine_port, queue, caller);
  cache = sys.spawn(cache_manager, cache_manager_config{shape, opts});
  scheduler = sys.spawn(kvtide::scheduler, scheduler_config{shape, opts, {}},
                        cache, caf::actor_cast<engine_actor>(port));
  caf::anon_send(port, msg::watch_scheduler{
                         caf::actor_cast<caf::strong_actor_ptr>(scheduler)});
  for (const auto& one : ranks) {
    auto& seat = *one->impl_;
    seat.port = sys.spawn(rank_port, seat.id, seat.queue, seat.caller);
    start_rank(seat);
  }
}

void runtime::impl::start_rank(rank::impl& seat) {
  auto device_options
    = device_of(opts, seat.id, seat.events, seat.compute, shared_pool);
  device_options.start_time = now;
  device_options.pins = pins;
  if (change_device)
    change_device(device_options);
  // With real time a device may wait for memory; in simulated time it never
  // does, and a hop to another thread would cost more than its work.
  seat.device
    = opts.device == device_kind::host_virtual
      ? system->spawn(device, std::move(device_options))
      : system->spawn<caf::detached>(device, std::move(device_options));
  auto worker_options = worker_config_of(opts, seat.id, seat.incarnation);
  worker_options.start_time = now;
  seat.worker
    = system->spawn(gpu_worker, std::move(worker_options), seat.device,
                    caf::actor_cast<scheduler_worker_port>(scheduler),
                    caf::actor_cast<rank_side_actor>(seat.port));
  caf::anon_send(
    seat.port,
    msg::watch_rank{caf::actor_cast<caf::strong_actor_ptr>(seat.worker),
                    caf::actor_cast<caf::strong_actor_ptr>(seat.device)});
  // Whoever spawns is left holding the system's logger, for which the system's
  // destructor waits: on another thread it would do so for ever.
  caf::logger::set_current_actor_system(nullptr);
}

result<runtime> runtime::start(const options& opts) {
  auto made = core::make_layout(opts);
  if (!made.ok())
    return made.failure();
  if (auto refused = check_memory(opts); refused.code != ec::none)
    return refused;
  if (auto refused = check_device(opts); refused.code != ec::none)
    return refused;
  if (auto refused = check_threads(opts); refused.code != ec::none)
    return refused;
  auto ready = std::vector<ready_fd>{};
  for (std::uint32_t i = 0; i <= opts.ranks; ++i) {
    auto one = ready_fd::create();
    if (!one.ok())
      return one.failure();
    ready.push_back(std::move(one).value());
  }
  auto next_ready = [&ready] {
    auto out = std::move(ready.back());
    ready.pop_back();
    return out;
  };
  auto out = std::make_unique<impl>(opts);
  out->shape = std::make_shared<const core::layout>(std::move(made).value());
  out->queue = std::make_shared<engine_queue>(next_ready());
  for (rank_id id = 0; id < opts.ranks; ++id) {
    auto seat = std::make_unique<rank::impl>();
    seat->id = id;
    seat->queue = std::make_shared<rank_queue>(next_ready());
    seat->events = std::make_shared<gpu::host_event_table>();
    seat->kind = opts.device;
    out->ranks.push_back(std::unique_ptr<rank>{new rank{std::move(seat)}});
  }
  if (opts.host_bytes == 0)
    out->start_without_cache();
  else
    out->start_actors();
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
  auto& seat = *impl_->ranks[id]->impl_;
  // The rank's own thread reads what is changed here.
  const auto inside_rank = seat.caller->enter();
  if (!inside_rank)
    return core::second_thread("rank");
  if (!impl_->serves())
    return core::no_scheduler();
  if (seat.is_taken())
    return {ec::out_of_order,
            "rank " + std::to_string(id)
              + " lives, or copies of it still run: call restart_rank after "
                "rank_failed with ec::rank_unavailable and kv_unregistered"};
  if (auto lost = seat.compute->lost(); lost.code != ec::none)
    return lost;
  ++seat.incarnation;
  impl_->start_rank(seat);
  return {};
}

rank& runtime::local_rank(rank_id id) {
  assert(id < impl_->ranks.size());
  return *impl_->ranks[id];
}

} // namespace kvtide
