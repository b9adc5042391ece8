// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"
#include "kvtide/result.hpp"

#include "actors/compute_side.hpp"
#include "actors/cuda_seat.hpp"
#include "core/device_check.hpp"
#include "core/order_log.hpp"
#include "gpu/copy_engine.hpp"
#include "gpu/host_copy_engine.hpp"
#include "gpu/host_event.hpp"
#include "gpu/host_pool_memory.hpp"
#include "gpu/kv_registration.hpp"
#include "messages/device.hpp"
#include "messages/gpu_worker.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kvtide {

/// Startup parameters of a device.
struct device_config {
  device_kind kind = device_kind::host;

  /// KV groups, at least 1.
  std::uint32_t groups = 1;

  /// Blocks per chunk, at least 1.
  std::uint32_t blocks_per_chunk = 1;

  /// Host pool in bytes, rounded down to whole slots. Zero gives no slots.
  std::uint64_t host_bytes = 0;

  /// Added to each job.
  std::chrono::nanoseconds latency{0};

  /// In each direction; zero means as fast as the engine can.
  std::uint64_t bytes_per_second = 0;

  /// What the compute events of a step name; `device_kind::host` only.
  std::shared_ptr<gpu::host_event_table> events;

  /// `device_kind::cuda` only.
  cuda_options cuda;

  /// Hears what the rank's thread may do, and that a device is lost. May be
  /// null.
  std::shared_ptr<compute_side> compute;

  /// See `options::pool_name`; not for ranks that hold replicas.
  std::string pool_name;

  /// Shared by the ranks of one process that hold replicas. Without it, or with
  /// one writer, the device has a pool of its own.
  std::shared_ptr<gpu::host_pool_memory> shared_pool;

  /// `device_kind::cuda` only: who pins `shared_pool`.
  std::shared_ptr<shared_pins> pins;

  /// Simulated time at the start.
  nanoseconds_t start_time = 0;

  /// What goes wrong with a job; for tests.
  std::function<gpu::copy_fault(job_id, job_kind)> fault;

  /// Makes the copies instead of the engine that `kind` names; for tests. Takes
  /// what it has to call when something ended.
  std::function<std::unique_ptr<gpu::copy_engine>(gpu::wake_function)> engine;

  /// For tests: called by copy threads instead of sending `device_woke`, which
  /// whoever listens then has to send. CAF's test scheduler must not be
  /// called by two threads at a time.
  std::function<void()> on_wake;

  /// Names the device in the log.
  rank_id rank = 0;

  /// See `options::order_checks`.
  kvtide::order_checks order_checks = kvtide::order_checks::count;

  /// Hears of every breach of the order; see core/order_log.hpp.
  std::function<void(const core::order_breach&)> on_breach;
};

/// State of a device: the engine, the pool and what the rank's memory looks
/// like. Touched by one thread at a time; copy threads only send `device_woke`.
struct device_state {
  static inline const char* name = "device";

  device_state() = default;

  device_state(const device_state&) = delete;

  device_state& operator=(const device_state&) = delete;

  ~device_state();

  // -- message handlers -------------------------------------------------------

  void register_memory(const msg::register_memory& req);

  /// While simulated time moves, all requests below wait their turn.
  void unregister_memory(const msg::unregister_memory& req);

  void submit_jobs(const msg::submit_jobs& req);

  void make_fence(const msg::make_fence& req);

  void tick(const msg::device_tick& req);

  void woke();

  // -- helpers ----------------------------------------------------------------

  using request = std::variant<msg::unregister_memory, msg::submit_jobs,
                               msg::make_fence, msg::device_tick>;

  template <class Request>
  void handle_in_turn(const Request& req) {
    meet_sender();
    if (advancing)
      waiting.emplace_back(req);
    else
      handle(req);
  }

  void handle(const msg::unregister_memory& req);

  void handle(const msg::submit_jobs& req);

  void handle(const msg::make_fence& req);

  void handle(const msg::device_tick& req);

  /// Hands one job to the engine, or reports it failed if it does not fit the
  /// registered memory (GEO-04).
  void start(const job& what, const msg::submit_jobs& req);

  void fail(job_id id, std::string text);

  /// Says what has ended. If that is the last that ever will, the device quits.
  void announce();

  /// What was in flight is announced; nothing after that can succeed (G7).
  void lose(const error& why);

  /// Says what has ended, then that an advance or a registration is over. Then
  /// handles what waited for the advance.
  void settle();

  [[nodiscard]] error open(const kv_memory& memory);

  /// Lets stores into a pool that outlives the process be noted.
  [[nodiscard]] result<std::unique_ptr<gpu::copy_engine>>
  note_stores(std::unique_ptr<gpu::copy_engine> inner,
              std::shared_ptr<gpu::named_pool> pool);

  /// @param memory of the host pool
  [[nodiscard]] result<std::unique_ptr<gpu::copy_engine>>
  make_engine(const std::shared_ptr<gpu::host_pool_memory>& memory);

  [[nodiscard]] gpu::wake_function wake();

  /// What was in the pool before this process. Once only: what is said later is
  /// not true any more.
  [[nodiscard]] std::vector<msg::kept_chunk> take_kept();

  /// Says what was got, to the log and to whoever asked for it.
  [[nodiscard]] std::vector<std::string> take_notes();

  /// The worker counts what the device was asked in a wrong order.
  void pass_on(const core::order_breach& what);

  /// The first one who asks is the worker that all answers go to.
  void meet_sender();

  // -- members ----------------------------------------------------------------

  device_actor::pointer self = nullptr;
  device_config config;
  gpu_worker_actor worker;

  /// Set while there is an engine: a copy thread that sends a message then
  /// never holds the last handle, whose release would join that very thread.
  device_actor alive;
  /// True while a `device_woke` is under way.
  std::shared_ptr<std::atomic<bool>> waking
    = std::make_shared<std::atomic<bool>>(false);

  std::shared_ptr<gpu::host_pool_memory> own_pool
    = std::make_shared<gpu::host_pool_memory>();
  /// `own_pool` or the shared one, as the first registration that succeeded
  /// chose: the scheduler's book says what lies in it.
  std::shared_ptr<gpu::host_pool_memory> pool_memory;
  /// `pool_memory` outlives the process.
  bool has_name = false;
  /// `device_kind::cuda` only, from the first registration on.
  std::optional<gpu::cuda_seat> cuda;
  /// Set while memory is registered.
  std::optional<gpu::kv_registration> registration;
  /// Declared after the memory that its threads touch.
  std::unique_ptr<gpu::copy_engine> engine;

  /// `take_kept` was called.
  bool kept_taken = false;
  /// No more jobs; the answer comes when the last one has ended.
  bool unregistering = false;
  /// Simulated time is moving, the answer to `device_tick` is owed.
  bool advancing = false;
  nanoseconds_t now = 0;
  std::deque<request> waiting;

  /// Reused by `settle`.
  std::vector<gpu::completion> done;
  std::vector<step_id> fences;

  core::order_log order;
  /// Without value if `options::order_checks` is off.
  std::optional<core::device_check> checks;
};

/// Copies between one rank's GPU memory and its host pool.
///
/// Answers go to the first actor that sent a message; when that one is gone the
/// device quits. It ends with an error, and the sentence as its context, when
/// its engine is lost (G7). Quitting waits for the copies that are running at
/// that moment, so in production the device is spawned detached. With an engine
/// inside, the device needs an exit to go away: it holds itself.
device_actor::behavior_type
device(device_actor::stateful_pointer<device_state> self, device_config config);

} // namespace kvtide
