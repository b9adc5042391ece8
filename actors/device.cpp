// SPDX-License-Identifier: Apache-2.0

#include "actors/device.hpp"

#include "actors/log.hpp"
#include "actors/order_checks.hpp"
#include "core/wide_digest.hpp"
#include "core/xxh3.hpp"
#include "gpu/named_pool_engine.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

namespace kvtide {

namespace {

gpu::content_digest digest_of(const void* data, std::size_t size) {
  const auto digest = XXH3_128bits(data, size);
  return {digest.low64, digest.high64};
}

/// What a store leaves in its slots.
std::vector<gpu::slot_content> contents_of(const job& store,
                                           const gpu::geometry& shape) {
  std::vector<gpu::slot_content> out;
  out.reserve(store.rows.size());
  for (const auto& row : store.rows) {
    const auto key = core::wide_digest_of(row.key);
    out.push_back({row.slot,
                   shape.block_bytes(row.key.group) * shape.blocks_per_chunk(),
                   {key.low, key.high}});
  }
  return out;
}

} // namespace

device_state::~device_state() {
  if (config.compute)
    config.compute->close();
}

// -- message handlers ---------------------------------------------------------

void device_state::register_memory(const msg::register_memory& req) {
  meet_sender();
  auto answer = msg::memory_registered{};
  answer.reason = open(req.memory);
  if (answer.reason.code == ec::none) {
    answer.slots = registration->pool.slots;
    answer.slot_bytes = registration->geometry.slot_bytes();
    answer.notes = take_notes();
    answer.kept = take_kept();
  }
  self->send(worker, std::move(answer));
}

void device_state::unregister_memory(const msg::unregister_memory& req) {
  handle_in_turn(req);
}

void device_state::submit_jobs(const msg::submit_jobs& req) {
  handle_in_turn(req);
}

void device_state::make_fence(const msg::make_fence& req) {
  handle_in_turn(req);
}

void device_state::tick(const msg::device_tick& req) {
  handle_in_turn(req);
}

void device_state::woke() {
  // First of all: what ends from here on wakes us again.
  waking->store(false);
  settle();
}

// -- helpers ------------------------------------------------------------------

void device_state::handle(const msg::unregister_memory&) {
  unregistering = true;
  settle();
}

void device_state::handle(const msg::submit_jobs& req) {
  if (checks)
    checks->submitted(req.jobs, req.computed);
  for (const auto& what : req.jobs)
    start(what, req);
}

void device_state::handle(const msg::make_fence& req) {
  if (checks)
    checks->fenced(req.step, req.jobs, req.skipped);
  auto made = std::optional{fence{}};
  if (engine) {
    made = engine->make_fence(req.step, req.jobs);
    announce(); // What is over for the fence must be over for the worker (S5).
  }
  if (made) // Else said by `settle`.
    self->send(worker, msg::fence_made{req.step, *made});
}

void device_state::handle(const msg::device_tick& req) {
  now = std::max(now, req.now);
  advancing = true;
  if (engine)
    engine->advance(now);
  settle();
}

void device_state::start(const job& what, const msg::submit_jobs& req) {
  if (!registration || unregistering)
    return fail(what.id, "no KV memory is registered");
  auto made = gpu::make_copies(what, *registration);
  if (!made)
    return fail(what.id, made.failure().text);
  auto copy = std::move(made).value();
  if (what.kind == job_kind::store && has_name)
    copy.contents = contents_of(what, registration->geometry);
  copy.after = req.after;
  copy.after_events.reserve(req.events.size());
  for (const auto handle : req.events)
    copy.after_events.push_back({handle});
  // The job in flight will be reported, this one must not be.
  if (engine->submit(std::move(copy)) != ec::none)
    order.breach(core::order_rule::s4,
                 "a job was submitted while it is in "
                 "flight",
                 "job " + std::to_string(what.id));
}

void device_state::fail(job_id id, std::string text) {
  self->send(worker, msg::copies_done{{{id, false, 0, std::move(text)}}});
}

void device_state::announce() {
  engine->poll(done, fences);
  auto ended = msg::copies_done{};
  ended.jobs.reserve(done.size());
  for (auto& x : done) {
    ended.jobs.push_back({x.job, x.result == gpu::copy_result::done,
                          x.first_failed_row, std::move(x.text)});
    ended.bytes += x.bytes;
    ended.copy_time += std::chrono::nanoseconds{x.copy_ns};
  }
  if (!ended.jobs.empty())
    self->send(worker, std::move(ended));
  for (const auto step : fences)
    self->send(worker, msg::fence_made{step, {}});
  done.clear();
  fences.clear();
  if (const auto why = engine->lost(); why.code != ec::none)
    lose(why);
}

void device_state::lose(const error& why) {
  const auto text
    = "rank " + std::to_string(config.rank) + " has lost its GPU: " + why.text;
  if (config.compute)
    config.compute->lose({ec::device_failure, text});
  self->quit(caf::make_error(caf::sec::runtime_error, text));
}

void device_state::settle() {
  // With a virtual clock: no thread makes anything after this until the next
  // submit or advance, so all that is due is announced before the answer.
  const auto advanced = !engine || engine->advanced();
  if (engine)
    announce();
  if (advancing && advanced) {
    advancing = false;
    self->send(worker, msg::device_ticked{engine ? engine->next_due() : never});
  }
  if (advancing)
    return;
  if (unregistering && (!engine || engine->in_flight() == 0)) {
    unregistering = false;
    engine.reset();
    registration.reset();
    alive = nullptr;
    if (config.compute)
      config.compute->close();
    self->send(worker, msg::memory_unregistered{});
  }
  while (!advancing && !waiting.empty()) {
    const auto next = std::move(waiting.front());
    waiting.pop_front();
    std::visit([this](const auto& req) { handle(req); }, next);
  }
}

error device_state::open(const kv_memory& memory) {
  if (registration)
    return {ec::out_of_order,
            "memory is registered already: call unregister_kv first"};
  // Only replicas may share: other ranks' chunks have the same slots and other
  // bytes.
  const auto replica = memory.writers > 1 && config.shared_pool != nullptr;
  if (memory.writers > 1 && !config.pool_name.empty())
    return {
      ec::unsupported,
      "kv_memory::writers is " + std::to_string(memory.writers)
        + " and options::pool_name is set: each rank of replicas stores a "
          "part of the chunks only, so none could say alone what was "
          "kept; leave pool_name empty"};
  const auto& chosen = replica ? config.shared_pool : own_pool;
  if (pool_memory && pool_memory != chosen)
    return {ec::invalid_argument,
            std::string{"kv_memory::writers was "}
              + (replica ? "one" : "above one") + " before and is now "
              + std::to_string(memory.writers)
              + ", which is another host pool: register as before, or start a "
                "new runtime"};
  auto wanted = gpu::registration_config{};
  wanted.groups = config.groups;
  wanted.blocks_per_chunk = config.blocks_per_chunk;
  wanted.pool.host_bytes = config.host_bytes;
  const auto on_gpu = config.kind == device_kind::cuda;
  // Kept only if the memory is that GPU's.
  auto seat = cuda;
  if (on_gpu) {
    auto found = seat_for(memory, cuda, replica ? config.pins : nullptr);
    if (!found)
      return found.failure();
    seat = std::move(found).value();
    wanted.domain = gpu::memory_domain::any;
    wanted.pool = seat->pool_config(config.cuda, config.host_bytes);
  }
  if (!config.pool_name.empty()) {
    auto& named = wanted.pool.named.emplace();
    named.name = config.pool_name;
    named.rank = config.rank;
    named.digest = digest_of;
    named.say = [this](const std::string& text) {
      log().info("rank {}: {}", config.rank, text);
    };
  }
  auto opened = gpu::open_kv(memory, wanted, *chosen);
  if (!opened)
    return opened.failure();
  // Who registers the pool pins it for good.
  cuda = std::move(seat);
  auto made = make_engine(chosen);
  if (made && chosen->named())
    made = note_stores(std::move(made).value(), chosen->named());
  if (!made)
    return made.failure();
  pool_memory = chosen;
  has_name = chosen->named() != nullptr;
  registration.emplace(std::move(opened).value());
  engine = std::move(made).value();
  alive = self;
  if (on_gpu && config.compute)
    config.compute->open(calls_of(*cuda, memory.streams));
  if (now > 0)
    engine->advance(now);
  return {};
}

result<std::unique_ptr<gpu::copy_engine>> device_state::make_engine(
  const std::shared_ptr<gpu::host_pool_memory>& memory) {
  if (config.engine)
    return config.engine(wake());
  if (config.kind == device_kind::cuda)
    return cuda->make_engine(config.cuda, wake(), memory, config.fault);
  gpu::host_engine_config out;
  out.wake = wake();
  out.latency = config.latency.count();
  out.bytes_per_second = config.bytes_per_second;
  out.events = config.events;
  out.fault = config.fault;
  switch (config.kind) {
    case device_kind::host:
      return gpu::make_host_copy_engine(std::move(out));
    case device_kind::host_virtual:
      return gpu::make_virtual_copy_engine(std::move(out));
    case device_kind::cuda:
      break;
  }
  return error{ec::unsupported, "this build has no such device"};
}

result<std::unique_ptr<gpu::copy_engine>>
device_state::note_stores(std::unique_ptr<gpu::copy_engine> inner,
                          std::shared_ptr<gpu::named_pool> pool) {
  gpu::named_engine_config out;
  out.pool = std::move(pool);
  out.wake = wake();
  if (config.kind == device_kind::host_virtual)
    out.threads = 0; // Nothing but simulated time decides what it reports.
  return gpu::make_named_pool_engine(std::move(inner), std::move(out));
}

gpu::wake_function device_state::wake() {
  if (config.on_wake)
    return config.on_wake;
  return [flag = waking, weak = caf::weak_actor_ptr{self->ctrl()}] {
    if (flag->exchange(true))
      return;
    if (const auto strong = weak.lock())
      caf::anon_send(caf::actor_cast<device_actor>(strong), msg::device_woke{});
  };
}

std::vector<msg::kept_chunk> device_state::take_kept() {
  auto out = std::vector<msg::kept_chunk>{};
  const auto named = pool_memory->named();
  if (!named || std::exchange(kept_taken, true))
    return out;
  out.reserve(named->kept().size());
  for (const auto& x : named->kept())
    out.push_back({x.slot, x.key.low, x.key.high});
  return out;
}

std::vector<std::string> device_state::take_notes() {
  auto out = std::vector<std::string>{};
  if (config.kind == device_kind::cuda) {
    out = gpu::notes_of(pool_memory->status());
    out.insert(out.begin(), cuda->name());
    for (auto& note : engine->notes())
      out.push_back(std::move(note));
  } else if (pool_memory->named()) {
    out = gpu::notes_of(pool_memory->status());
  }
  for (const auto& note : out)
    log().info("rank {}: {}", config.rank, note);
  return out;
}

void device_state::pass_on(const core::order_breach& what) {
  self->send(worker, msg::device_breach{what.rule});
  if (config.on_breach)
    config.on_breach(what);
}

void device_state::meet_sender() {
  const auto& sender = self->current_sender();
  if (worker || !sender)
    return;
  worker = caf::actor_cast<gpu_worker_actor>(sender);
  self->monitor(worker);
}

// -- behavior -----------------------------------------------------------------

device_actor::behavior_type
device(device_actor::stateful_pointer<device_state> self,
       device_config config) {
  auto& st = self->state;
  st.self = self;
  st.config = std::move(config);
  st.order = make_order_log(
    "device of rank " + std::to_string(st.config.rank), st.config.order_checks,
    [&st](const core::order_breach& x) { st.pass_on(x); });
  if (st.config.order_checks != order_checks::off)
    st.checks.emplace(st.order);
  st.now = st.config.start_time;
  self->set_down_handler(
    [self](caf::down_msg&) { self->quit(caf::exit_reason::user_shutdown); });
  return {
    [&st](const msg::register_memory& x) { st.register_memory(x); },
    [&st](const msg::unregister_memory& x) { st.unregister_memory(x); },
    [&st](const msg::submit_jobs& x) { st.submit_jobs(x); },
    [&st](const msg::make_fence& x) { st.make_fence(x); },
    [&st](const msg::device_tick& x) { st.tick(x); },
    [&st](const msg::device_woke&) { st.woke(); },
  };
}

} // namespace kvtide
