// SPDX-License-Identifier: Apache-2.0

#include "actors/rank_home.hpp"

#include "actors/network.hpp"
#include "actors/thread_room.hpp"
#include "core/call_faults.hpp"
#include "gpu/cuda/devices.hpp"
#include "gpu/cuda_choices.hpp"
#include "gpu/host_memory.hpp"
#include "gpu/named_pool_file.hpp"
#include "messages/all.hpp"

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/logger.hpp>

#include <string>
#include <utility>

namespace kvtide {

namespace {

error check_memory(const options& opts, std::uint32_t here) {
  const auto there = gpu::physical_memory_bytes();
  if (here == 0 || opts.host_bytes <= there / here)
    return {};
  return {ec::out_of_memory,
          "host_bytes: " + std::to_string(opts.host_bytes)
            + " bytes for each of " + std::to_string(here)
            + " ranks are more than the " + std::to_string(there)
            + " bytes of memory of this machine; ask for less"};
}

/// Without a cache nobody needs a GPU, nor without a rank.
error check_device(const options& opts, std::uint32_t here) {
  if (auto fault = gpu::fault_of(opts.cuda); fault.code != ec::none)
    return fault;
  if (!opts.pool_name.empty())
    if (auto fault = gpu::fault_of_pool_name(opts.pool_name);
        fault.code != ec::none)
      return fault;
  if (opts.device != device_kind::cuda || opts.host_bytes == 0 || here == 0)
    return {};
  const auto there = gpu::count_devices();
  return there ? error{} : there.failure();
}

/// Those of the actors, of CAF's clock and its printer, of the network if there
/// is one, with real time one per device and two per pool with a name, and two
/// more, as what they need of memory is not known exactly.
error check_threads(const options& opts, std::uint32_t here) {
  if (opts.host_bytes == 0)
    return {};
  const auto per_device = opts.pool_name.empty() ? 1U : 3U;
  const auto devices
    = opts.device == device_kind::host_virtual ? 0 : here * per_device;
  const auto network = opts.network == nullptr ? 0U : 2U;
  return check_thread_room(opts.actor_threads + 2 + devices + network + 2);
}

} // namespace

error fault_of_machine(const options& opts, std::uint32_t here) {
  for (auto* fault_in : {check_memory, check_device, check_threads})
    if (auto fault = fault_in(opts, here); fault.code != ec::none)
      return fault;
  return {};
}

rank_home::rank_home(const options& options_) : opts(options_) {
  // nop
}

rank_home::~rank_home() {
  using caf::exit_reason;
  for (const auto& one : ranks) {
    if (one == nullptr)
      continue;
    caf::anon_send_exit(one->impl_->worker, exit_reason::user_shutdown);
    caf::anon_send_exit(one->impl_->device, exit_reason::user_shutdown);
    caf::anon_send_exit(one->impl_->port, exit_reason::user_shutdown);
  }
  // The system's destructor waits for all of them.
}

error rank_home::make_ranks(const std::vector<rank_id>& who) {
  ranks.resize(opts.ranks);
  for (const auto id : who) {
    auto ready = ready_fd::create();
    if (!ready)
      return ready.failure();
    auto seat = std::make_unique<rank::impl>();
    seat->id = id;
    seat->queue = std::make_shared<rank_queue>(std::move(ready).value());
    seat->events = std::make_shared<gpu::host_event_table>();
    seat->kind = opts.device;
    ranks[id] = std::unique_ptr<rank>{new rank{std::move(seat)}};
  }
  return {};
}

void rank_home::start_system(network* net) {
  register_messages(config);
  // Stealing lets an idle thread sleep while work waits; sharing does not.
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", std::size_t{opts.actor_threads});
  config.set("logger.verbosity", caf::atom("quiet"));
  if (net != nullptr)
    net->prepare(config);
  system.emplace(config);
}

void rank_home::start_rank(rank::impl& seat, gpu_worker_config worker_options,
                           const scheduler_worker_port& scheduler) {
  if (seat.port == nullptr)
    seat.port = system->spawn(rank_port, seat.id, seat.queue, seat.caller);
  // With real time a device may wait for memory; in simulated time it never
  // does, and a hop to another thread would cost more than its work.
  seat.device = opts.device == device_kind::host_virtual
                ? system->spawn(device, device_of(seat))
                : system->spawn<caf::detached>(device, device_of(seat));
  worker_options.start_time = now;
  seat.worker
    = system->spawn(gpu_worker, std::move(worker_options), seat.device,
                    scheduler, caf::actor_cast<rank_side_actor>(seat.port));
  caf::anon_send(
    seat.port,
    msg::watch_rank{caf::actor_cast<caf::strong_actor_ptr>(seat.worker),
                    caf::actor_cast<caf::strong_actor_ptr>(seat.device)});
  forget_system();
}

void rank_home::forget_system() {
  caf::logger::set_current_actor_system(nullptr);
}

rank::impl* rank_home::find(rank_id id) const {
  return id < ranks.size() && ranks[id] != nullptr ? ranks[id]->impl_.get()
                                                   : nullptr;
}

device_config rank_home::device_of(const rank::impl& seat) const {
  auto out = device_config{};
  out.kind = opts.device;
  out.groups = static_cast<std::uint32_t>(opts.groups.size());
  out.blocks_per_chunk = static_cast<std::uint32_t>(opts.blocks_per_chunk);
  out.host_bytes = opts.host_bytes;
  out.shared_pool = shared_pool;
  out.pool_name = opts.pool_name;
  out.pins = pins;
  out.latency = opts.copy_latency;
  out.bytes_per_second = opts.copy_bytes_per_second;
  out.events = seat.events;
  out.cuda = opts.cuda;
  out.compute = seat.compute;
  out.rank = seat.id;
  out.order_checks = opts.order_checks;
  out.start_time = now;
  if (change_device)
    change_device(out);
  return out;
}

error rank_home::restart(rank::impl& seat) {
  // The rank's own thread reads what is changed here.
  const auto inside = seat.caller->enter();
  if (!inside)
    return core::second_thread("rank");
  if (seat.is_taken())
    return {ec::out_of_order,
            "rank " + std::to_string(seat.id)
              + " lives, or copies of it still run: call restart_rank after "
                "rank_failed with ec::rank_unavailable and kv_unregistered"};
  if (auto lost = seat.compute->lost(); lost.code != ec::none)
    return lost;
  ++seat.incarnation;
  start_worker(seat);
  return {};
}

} // namespace kvtide
