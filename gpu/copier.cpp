// SPDX-License-Identifier: Apache-2.0

#include "kvtide/gpu.hpp"

#include "gpu/cuda/devices.hpp"
#include "gpu/cuda_choices.hpp"
#include "gpu/cuda_seat.hpp"
#include "gpu/host_copy_engine.hpp"
#include "gpu/host_event.hpp"
#include "gpu/host_pool_memory.hpp"
#include "gpu/kv_registration.hpp"
#include "gpu/wake_signal.hpp"

#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace kvtide::gpu {

namespace {

constexpr std::uint32_t most_groups = 1'024;
constexpr std::uint32_t most_host_threads = 256;

error check_options(const copier_options& opts) {
  const auto wrong = [](const char* text) {
    return error{ec::invalid_options, text};
  };
  if (opts.groups == 0 || opts.groups > most_groups)
    return wrong("copier_options::groups must be 1 to 1,024");
  if (opts.blocks_per_chunk == 0)
    return wrong("copier_options::blocks_per_chunk must be at least 1");
  if (opts.host_bytes == 0)
    return wrong("copier_options::host_bytes must be set: a copier needs a "
                 "host pool of at least one chunk");
  if (opts.host_threads == 0 || opts.host_threads > most_host_threads)
    return wrong("copier_options::host_threads must be 1 to 256");
  return fault_of(opts.cuda);
}

copy_report report_of(completion ended) {
  auto out = copy_report{};
  out.job = ended.job;
  out.status
    = ended.result == copy_result::done ? job_status::done : job_status::failed;
  out.first_failed_row = ended.first_failed_row;
  out.bytes = ended.bytes;
  out.copy_time = std::chrono::nanoseconds{ended.copy_ns};
  out.text = std::move(ended.text);
  return out;
}

/// No exception crosses the interface.
template <class Function>
auto guarded(const char* call, Function fun) -> decltype(fun()) {
  try {
    return fun();
  } catch (const std::bad_alloc&) {
    return error{ec::out_of_memory,
                 std::string{call}
                   + ": this process has no memory left for it"};
  } catch (const std::system_error& caught) {
    return error{ec::out_of_memory, std::string{call} + ": " + caught.what()
                                      + ": a thread could not be started"};
  }
}

} // namespace

result<int> device_count() {
  return count_devices();
}

result<device_facts> describe_device(int device) {
  return facts_of(device);
}

struct copier::impl {
  copier_options opts;
  std::shared_ptr<wake_signal> signal;

  /// `host_device`.
  std::shared_ptr<host_event_table> host_events;

  /// A GPU.
  std::optional<cuda_seat> seat;

  /// Outlives the copier if copies might still touch it (G7).
  std::shared_ptr<host_pool_memory> pool = std::make_shared<host_pool_memory>();
  std::optional<kv_registration> registration;
  /// Declared after the memory that its threads touch.
  std::unique_ptr<copy_engine> engine;

  bool unregistering = false;
  /// Of an engine that has ended.
  error lost;
  /// Reused by `poll`.
  std::vector<completion> done;

  [[nodiscard]] bool on_host() const {
    return opts.device == host_device;
  }

  [[nodiscard]] error find_device() {
    if (on_host()) {
      host_events = std::make_shared<host_event_table>();
      return {};
    }
    auto made = cuda_seat::make(opts.device);
    if (!made)
      return made.failure();
    seat.emplace(std::move(made).value());
    return {};
  }

  [[nodiscard]] registration_config registration_of() const {
    auto out = registration_config{};
    out.groups = opts.groups;
    out.blocks_per_chunk = opts.blocks_per_chunk;
    if (on_host()) {
      out.pool.host_bytes = opts.host_bytes;
      return out;
    }
    out.domain = memory_domain::any;
    out.pool = seat->pool_config(opts.cuda, opts.host_bytes);
    return out;
  }

  [[nodiscard]] result<std::unique_ptr<copy_engine>> make_engine() const {
    auto wake = [to = signal] { to->set(); };
    if (on_host()) {
      auto config = host_engine_config{};
      config.wake = std::move(wake);
      config.streams_per_direction = opts.host_threads;
      config.events = host_events;
      return make_host_copy_engine(std::move(config));
    }
    return seat->make_engine(opts.cuda, std::move(wake), pool);
  }

  result<registered_kv> open(const kv_memory& memory) {
    auto opened = open_kv(memory, registration_of(), *pool);
    if (!opened)
      return opened.failure();
    auto made = make_engine();
    if (!made)
      return made.failure();
    auto out = registered_kv{};
    out.slots = opened.value().pool.slots;
    out.slot_bytes = opened.value().geometry.slot_bytes();
    out.notes = notes_of(pool->status());
    for (auto& note : made.value()->notes())
      out.notes.push_back(std::move(note));
    registration.emplace(std::move(opened).value());
    engine = std::move(made).value();
    return out;
  }

  error start_job(const job& what, const std::vector<std::uint64_t>& events,
                  const std::vector<job_id>& after) {
    auto copies = make_copies(what, *registration);
    if (!copies)
      return copies.failure();
    copies.value().after = after;
    copies.value().after_events.reserve(events.size());
    for (const auto handle : events)
      copies.value().after_events.push_back({handle});
    const auto refused = engine->submit(std::move(copies).value());
    if (refused != ec::none)
      return {refused, "submit: job " + std::to_string(what.id)
                         + " is in flight: every job needs an id of its own"};
    return {};
  }
};

result<copier> copier::start(copier_options opts) {
  if (auto wrong = check_options(opts); wrong.code != ec::none)
    return wrong;
  return guarded("start", [&]() -> result<copier> {
    auto made = std::make_unique<impl>();
    made->signal = std::make_shared<wake_signal>(std::move(opts.wake));
    made->opts = std::move(opts);
    if (auto failed = made->find_device(); failed.code != ec::none)
      return failed;
    return copier{std::move(made)};
  });
}

copier::copier(std::unique_ptr<impl> ptr) noexcept : impl_(std::move(ptr)) {
  // nop
}

copier::copier(copier&&) noexcept = default;

copier& copier::operator=(copier&&) noexcept = default;

copier::~copier() = default;

// -- memory -------------------------------------------------------------------

result<registered_kv> copier::register_kv(const kv_memory& memory) {
  auto& my = *impl_;
  if (auto why = lost(); why.code != ec::none)
    return why;
  if (my.engine)
    return error{ec::out_of_order,
                 "register_kv: memory is registered already: call "
                 "unregister_kv, and poll until it is over"};
  if (!my.on_host() && memory.device != my.opts.device)
    return error{ec::invalid_argument,
                 "register_kv: kv_memory::device is "
                   + std::to_string(memory.device) + ", but the copier is one "
                   + "of device " + std::to_string(my.opts.device)};
  return guarded("register_kv", [&] { return my.open(memory); });
}

error copier::unregister_kv() {
  if (!impl_->engine || impl_->unregistering)
    return {ec::out_of_order, "unregister_kv: no memory is registered"};
  impl_->unregistering = true;
  impl_->signal->set();
  return {};
}

// -- events -------------------------------------------------------------------

result<std::uint64_t> copier::record(std::uint64_t stream) {
  if (!impl_->on_host())
    return impl_->seat->events()->record(stream);
  auto made = impl_->host_events->create();
  if (made)
    impl_->host_events->complete(made.value());
  return made;
}

result<std::uint64_t> copier::make_event() {
  if (!impl_->on_host())
    return error{ec::unsupported,
                 "make_event: only the host device has such events; on a GPU "
                 "record the stream of the compute"};
  return impl_->host_events->create();
}

void copier::complete_event(std::uint64_t handle) {
  if (impl_->on_host())
    impl_->host_events->complete(handle);
}

// -- jobs ---------------------------------------------------------------------

error copier::submit(const job& what, const std::vector<std::uint64_t>& events,
                     const std::vector<job_id>& after) {
  auto& my = *impl_;
  if (auto why = lost(); why.code != ec::none)
    return why;
  if (!my.engine || my.unregistering)
    return {ec::out_of_order, "submit: no KV memory is registered"};
  return guarded("submit", [&] { return my.start_job(what, events, after); });
}

std::optional<fence> copier::make_fence(step_id step,
                                        const std::vector<job_id>& jobs) {
  if (!impl_->engine)
    return fence{};
  return impl_->engine->make_fence(step, jobs);
}

copier_news copier::poll() {
  auto& my = *impl_;
  auto out = copier_news{};
  if (!my.engine)
    return out;
  my.engine->poll(my.done, out.fences);
  out.jobs.reserve(my.done.size());
  for (auto& ended : my.done)
    out.jobs.push_back(report_of(std::move(ended)));
  my.done.clear();
  if (my.unregistering && my.engine->in_flight() == 0) {
    my.lost = my.engine->lost();
    my.unregistering = false;
    my.engine.reset();
    my.registration.reset();
    out.unregistered = true;
  }
  return out;
}

bool copier::wait(std::chrono::milliseconds timeout) const {
  return impl_->signal->wait(timeout);
}

std::size_t copier::in_flight() const {
  return impl_->engine ? impl_->engine->in_flight() : 0;
}

error copier::lost() const {
  return impl_->engine ? impl_->engine->lost() : impl_->lost;
}

} // namespace kvtide::gpu
