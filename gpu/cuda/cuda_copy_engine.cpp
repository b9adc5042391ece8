// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/cuda_copy_engine.hpp"

#include "kvtide/options.hpp"

#include "gpu/cuda/calibration.hpp"
#include "gpu/cuda/copy_lane.hpp"
#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/devices.hpp"
#include "gpu/cuda/fence_joints.hpp"
#include "gpu/cuda/keep_for_ever.hpp"
#include "gpu/cuda/stall.hpp"
#include "gpu/each_once.hpp"
#include "gpu/slot_order.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace kvtide::gpu {

namespace {

using clock = std::chrono::steady_clock;

/// A kernel's table is in use while its slice is under way: enough for two
/// slices in each direction and for the flushes of a busy step beside them.
constexpr std::uint32_t table_count = 64;

/// Made at start, because making one may wait for the device: about what is in
/// use at a time.
constexpr std::size_t events_at_start = 32;
constexpr std::size_t joints_at_start = 2;

/// What the link moves in that time is a slice (G3).
constexpr double slice_seconds = 1.5e-3;
constexpr std::uint64_t smallest_slice = 1u << 20;

class cuda_copy_engine final : public copy_engine {
public:
  using job_ptr = std::shared_ptr<cuda_job>;

  explicit cuda_copy_engine(cuda_engine_config config)
    : config_(std::move(config)),
      wake_(std::make_unique<wake_function>(config_.wake)),
      stall_(std::make_unique<stall>()) {
    // nop
  }

  ~cuda_copy_engine() override {
    const device_scope scope{config_.device};
    stall_->let_go();
    for (auto& lane : lanes_)
      lane->queue.clear();
    if (lost_.code != ec::none || !wait_until_idle())
      abandon();
    give_back();
  }

  /// Takes everything that serving needs, and loads the kernel (G6).
  error start() {
    const device_scope scope{config_.device};
    if (auto failed = choose_sizes(); failed.code != ec::none)
      return failed;
    auto tables = piece_tables::make(table_count);
    if (!tables)
      return tables.failure();
    tables_ = std::move(tables).value();
    for (const auto kind : {job_kind::store, job_kind::load}) {
      for (std::uint32_t i = 0; i < config_.streams_per_direction; ++i)
        if (auto failed = add_lane(kind, false); failed.code != ec::none)
          return failed;
      if (auto failed = add_lane(kind, true); failed.code != ec::none)
        return failed;
    }
    auto own = make_stream();
    if (!own)
      return own.failure();
    own_stream_ = std::move(own).value();
    if (auto failed = timed_events_.reserve(events_at_start);
        failed.code != ec::none)
      return failed;
    if (auto failed = joints_.reserve(joints_at_start); failed.code != ec::none)
      return failed;
    return check("loading the copy kernel",
                 launch_copy_pieces(nullptr, 0, 1, own_stream_.get()));
  }

  ec submit(copy_job what) override {
    const device_scope scope{config_.device};
    auto fault
      = config_.fault ? config_.fault(what.id, what.kind) : copy_fault{};
    if (!unreported_.insert(what.id).second)
      return ec::invalid_argument;
    if (lost_.code != ec::none) {
      fail_at_once(what.id, lost_.text);
      return ec::none;
    }
    for (const auto event : what.after_events) {
      if (config_.events->knows(event.handle))
        continue;
      fail_at_once(what.id, "compute event " + std::to_string(event.handle)
                              + " was never recorded; nothing was copied");
      return ec::none;
    }
    auto job = make_job(std::move(what), fault);
    live_.emplace(job->id, job);
    job->lane->queue.push_back(std::move(job));
    pump();
    return ec::none;
  }

  std::optional<fence> make_fence(step_id step,
                                  const std::vector<job_id>& jobs) override {
    const device_scope scope{config_.device};
    joints_.take_back(step);
    collect();
    auto waits_for = std::vector<job_ptr>{};
    for (const auto id : each_once(jobs))
      if (const auto found = live_.find(id); found != live_.end())
        waits_for.push_back(found->second);
    if (waits_for.empty())
      return fence{};
    for (const auto& job : waits_for)
      hurry(job);
    pump(); // What waited behind them in their queues.
    if (config_.fences == fence_wait::stream)
      if (const auto made = record_fence(step, waits_for))
        return *made;
    host_fences_.push_back({step, std::move(waits_for)});
    return std::nullopt;
  }

  void poll(std::vector<completion>& done,
            std::vector<step_id>& fences) override {
    const device_scope scope{config_.device};
    collect();
    pump();
    for (auto& ended : done_) {
      unreported_.erase(ended.job);
      done.push_back(std::move(ended));
    }
    done_.clear();
    std::erase_if(host_fences_, [&fences](const host_fence& x) {
      if (!std::all_of(x.jobs.begin(), x.jobs.end(),
                       [](const job_ptr& job) { return job->ended; }))
        return false;
      fences.push_back(x.step);
      return true;
    });
  }

  std::size_t in_flight() const override {
    return unreported_.size();
  }

  error lost() const override {
    return lost_;
  }

  std::vector<std::string> notes() const override {
    return notes_;
  }

private:
  struct host_fence {
    step_id step = 0;
    std::vector<job_ptr> jobs;
  };

  // -- start ------------------------------------------------------------------

  error choose_sizes() {
    auto rates = copy_rates{};
    if (config_.slice_bytes == 0
        || (config_.path == copy_path::automatic && !config_.kernel_below)) {
      auto found = rates_of(config_.device, config_.kernel_blocks,
                            config_.calibration_file);
      if (!found)
        return found.failure();
      rates = found.value().rates;
      if (!found.value().note.empty())
        notes_.push_back(found.value().note);
    }
    if (!config_.kernel_below)
      config_.kernel_below = rates.kernel_below;
    if (config_.slice_bytes == 0)
      config_.slice_bytes = std::max(
        smallest_slice,
        static_cast<std::uint64_t>(static_cast<double>(rates.bytes_per_second)
                                   * slice_seconds));
    if (config_.bytes_in_flight == 0)
      config_.bytes_in_flight = 2 * config_.slice_bytes;
    config_.bytes_in_flight
      = std::max(config_.bytes_in_flight, config_.slice_bytes);
    return {};
  }

  error add_lane(job_kind kind, bool urgent) {
    auto how = copy_lane::config{};
    how.how = {config_.path, *config_.kernel_below, config_.kernel_blocks};
    how.tables = tables_.get();
    how.events = &timed_events_;
    how.pool = config_.pool.get();
    how.wake = wake_.get();
    how.bounce_bytes = config_.bounce_bytes;
    how.urgent = urgent;
    auto made = copy_lane::make(how);
    if (!made)
      return made.failure();
    auto& side = side_of(kind);
    (urgent ? side.urgent : side.lanes.emplace_back()) = made.value().get();
    lanes_.push_back(std::move(made).value());
    return {};
  }

  // -- jobs -------------------------------------------------------------------

  void fail_at_once(job_id id, std::string why) {
    auto outcome = completion{};
    outcome.job = id;
    outcome.result = copy_result::failed;
    outcome.text = std::move(why);
    done_.push_back(std::move(outcome));
    (*wake_)();
  }

  job_ptr make_job(copy_job what, copy_fault fault) {
    auto job = std::make_shared<cuda_job>();
    job->id = what.id;
    job->kind = what.kind;
    job->fault = fault;
    auto before = std::move(what.after);
    slots_.add(what.id, what.kind, what.slots, before);
    for (const auto id : each_once(std::move(before)))
      if (const auto found = live_.find(id); found != live_.end())
        job->before.push_back(found->second);
    job->slots = std::move(what.slots);
    job->after_events = std::move(what.after_events);
    if (fault.kind == fault_kind::fail) {
      std::erase_if(what.fragments,
                    [&fault](const fragment& x) { return x.row >= fault.row; });
      job->failure = "injected failure of job " + std::to_string(what.id);
      job->first_failed_row = fault.row;
    }
    merge_adjacent(
      what.fragments, what.kind, [this](const void* host, std::uint64_t bytes) {
        return config_.pool == nullptr
            || config_.pool->device_address(host, bytes) != nullptr;
      });
    job->rest = fragment_cursor{std::move(what.fragments)};
    auto& side = side_of(what.kind);
    job->lane = side.lanes[side.turn++ % side.lanes.size()];
    return job;
  }

  /// Enqueues what there is room for, and whose predecessors are enqueued.
  void pump() {
    for (auto moved = true; moved && lost_.code == ec::none;) {
      moved = false;
      for (auto& lane : lanes_)
        moved = pump(*lane) || moved;
    }
  }

  /// @returns true if a job got under way
  bool pump(copy_lane& lane) {
    auto moved = false;
    for (std::size_t i = 0; i < lane.queue.size();) {
      const auto job = lane.queue[i];
      if (enqueue(job, lane.urgent())) {
        lane.queue.erase(lane.queue.begin() + static_cast<std::ptrdiff_t>(i));
        moved = true;
      } else if (lost_.code != ec::none || !lane.urgent()) {
        break;
      } else {
        // Its predecessors may be behind it: they came here in any order.
        ++i;
      }
    }
    return moved;
  }

  /// Enqueues a job, and all that it must follow, before everything that waits
  /// for room.
  void hurry(const job_ptr& job) {
    if (job->ended || job->enqueued)
      return;
    for (const auto& other : job->before)
      hurry(other);
    std::erase(job->lane->queue, job);
    // A job that has begun stays in its stream, behind its own copies.
    if (!job->started)
      job->lane = side_of(job->kind).urgent;
    if (!enqueue(job, true) && !job->ended)
      job->lane->queue.push_back(job);
  }

  /// @returns true if all of the job is under way now, false if it has to wait
  bool enqueue(const job_ptr& job, bool urgent) {
    if (lost_.code != ec::none)
      return false;
    auto& side = side_of(job->kind);
    const auto most = std::min(config_.slice_bytes, job->lane->most_bytes());
    // A job without fragments has a slice as well: its end.
    while (job->slices == 0 || (!job->stopped && !job->rest.done())) {
      // A stream that waits for compute must not keep others from copying: each
      // may have one slice under way.
      if (!urgent && !job->lane->empty()
          && side.bytes_under_way + most > config_.bytes_in_flight)
        return false;
      // Not before there is room: what has begun cannot go another way.
      if (!job->started && !begin(*job))
        return false;
      auto parts = std::vector<fragment>{};
      if (!job->stopped)
        job->rest.take(most, copy_lane::most_fragments, parts);
      side.bytes_under_way += job->lane->enqueue(job, std::move(parts));
      if (job->stopped)
        look_for_loss(job->failure);
      if (lost_.code != ec::none)
        return false;
    }
    job->enqueued = true;
    return true;
  }

  /// Makes the job's stream wait for all that must be before it.
  /// @returns false if that cannot be said in a stream yet
  bool begin(cuda_job& job) {
    std::erase_if(job.before, [](const job_ptr& x) { return x->ended; });
    for (const auto& other : job.before)
      if (!other->can_be_followed())
        return false;
    const auto stream = job.lane->stream();
    auto failed = error{};
    for (const auto& other : job.before) {
      // Jobs of one stream follow one another anyway.
      if (other->lane == job.lane)
        continue;
      failed = check("cudaStreamWaitEvent",
                     ::cudaStreamWaitEvent(stream, other->end, 0));
      if (failed.code == ec::none)
        continue;
      // A job that ended without this wait would let those behind it go too
      // early (S8): tried again until the other one has ended.
      look_for_loss(failed.text);
      return false;
    }
    for (const auto event : job.after_events)
      if (failed.code == ec::none)
        failed = config_.events->wait(stream, event.handle);
    job.before.clear();
    job.started = true;
    if (failed.code != ec::none)
      job.stop(std::move(failed.text), 0);
    else
      inject(job);
    if (auto start = timed_events_.take()) {
      ignore(::cudaEventRecord(start.value().get(), stream));
      job.start = std::move(start).value();
    }
    return true;
  }

  void inject(const cuda_job& job) {
    auto time = job.fault.delay;
    if (job.fault.kind == fault_kind::hang)
      time = std::chrono::nanoseconds{longest_wait}.count();
    else if (job.fault.kind != fault_kind::delay)
      return;
    ignore(::cudaLaunchHostFunc(job.lane->stream(), stall::wait,
                                stall_->make_request(time)));
  }

  // -- ends -------------------------------------------------------------------

  void collect() {
    if (lost_.code != ec::none)
      return;
    auto failed = error{};
    for (auto& lane : lanes_) {
      while (auto ended = lane->take_ended(failed))
        end_slice(std::move(*ended));
      if (failed.code != ec::none)
        return lose(failed.text);
    }
  }

  void end_slice(copy_lane::ended_slice slice) {
    auto& job = *slice.job;
    side_of(job.kind).bytes_under_way -= slice.bytes;
    --job.slices_under_way;
    if (job.enqueued && job.slices_under_way == 0)
      end_job(job, slice.end.get());
    timed_events_.put(std::move(slice.end));
  }

  void end_job(cuda_job& job, cudaEvent_t end) {
    job.ended = true;
    job.end = nullptr;
    auto outcome = completion{};
    outcome.job = job.id;
    outcome.bytes = job.copied_bytes;
    if (!job.failure.empty()) {
      outcome.result = copy_result::failed;
      outcome.first_failed_row = job.first_failed_row;
      outcome.text = std::move(job.failure);
    }
    auto ms = 0.0f;
    if (job.start.get() != nullptr && end != nullptr) {
      const auto status = ::cudaEventElapsedTime(&ms, job.start.get(), end);
      ignore(status);
      if (status == cudaSuccess)
        outcome.copy_ns = std::llround(static_cast<double>(ms) * 1e6);
    }
    timed_events_.put(std::move(job.start));
    done_.push_back(std::move(outcome));
    slots_.remove(job.id, job.slots);
    live_.erase(job.id);
  }

  // -- fences -----------------------------------------------------------------

  /// @returns nothing if only the host can wait for these jobs
  std::optional<fence> record_fence(step_id step,
                                    const std::vector<job_ptr>& jobs) {
    auto ends = std::vector<cudaEvent_t>{};
    for (const auto& job : jobs) {
      if (!job->can_be_followed())
        return std::nullopt;
      ends.push_back(job->end);
    }
    const auto made = joints_.join(step, ends);
    if (made == nullptr)
      return std::nullopt;
    return fence{fence::kind_t::event, to_number(made)};
  }

  // -- loss -------------------------------------------------------------------

  /// A sticky error is one that stays: whatever is called next returns it.
  void look_for_loss(const std::string& why) {
    const auto status = ::cudaStreamQuery(own_stream_.get());
    ignore(status);
    if (status != cudaSuccess && status != cudaErrorNotReady)
      lose(why);
  }

  /// Ends everything: the context is gone, and what ran in it with it (G7).
  void lose(const std::string& why) {
    lost_ = {ec::device_failure, "the CUDA context of device "
                                   + std::to_string(config_.device)
                                   + " is gone after an error (" + why
                                   + "): its process has to be restarted"};
    auto ids = std::vector<job_id>{};
    for (auto& [id, job] : live_) {
      job->ended = true;
      job->start.release();
      ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end());
    live_.clear();
    slots_ = {};
    for (auto& lane : lanes_)
      lane->queue.clear();
    for (const auto id : ids)
      fail_at_once(id, lost_.text);
  }

  /// @returns false if something is under way even after a while
  bool wait_until_idle() {
    const auto deadline = clock::now() + config_.patience;
    for (;;) {
      collect();
      if (lost_.code != ec::none)
        return false;
      if (std::all_of(lanes_.begin(), lanes_.end(),
                      [](const auto& lane) { return lane->idle(); }))
        return true;
      // With nothing under way, nobody else would notice (G7).
      look_for_loss("found when the engine ended");
      if (lost_.code != ec::none || clock::now() > deadline)
        return false;
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }

  /// While the device is current and no capture can be hurt: members end behind
  /// the body of a destructor, and so behind its scope (G6).
  void give_back() {
    lanes_.clear();
    live_.clear();
    host_fences_.clear();
    joints_ = {};
    tables_.reset();
    timed_events_ = {};
    own_stream_ = {};
  }

  /// Leaks everything that the device, or a host function, may still touch.
  void abandon() {
    for (auto& lane : lanes_)
      lane->abandon();
    timed_events_.abandon();
    joints_.abandon();
    for (auto& [id, job] : live_)
      job->start.release();
    own_stream_.release();
    if (tables_)
      tables_->abandon();
    config_.events->abandon();
    if (config_.pool)
      config_.pool->abandon();
    keep_for_ever(config_.keep);
    keep_for_ever(std::move(wake_));
    keep_for_ever(std::move(stall_));
  }

  struct direction {
    std::vector<copy_lane*> lanes;
    copy_lane* urgent = nullptr;
    std::size_t turn = 0;
    std::uint64_t bytes_under_way = 0;
  };

  direction& side_of(job_kind kind) {
    return directions_[static_cast<std::size_t>(kind)];
  }

  cuda_engine_config config_;
  /// For host functions, which may come when this object is gone.
  std::unique_ptr<wake_function> wake_;
  std::unique_ptr<stall> stall_;
  error lost_;
  std::vector<std::string> notes_;

  event_cache timed_events_;
  fence_joints joints_;
  std::unique_ptr<piece_tables> tables_;
  /// For what is neither a copy nor a fence.
  cuda_stream own_stream_;
  std::vector<std::unique_ptr<copy_lane>> lanes_;
  /// By `job_kind`.
  direction directions_[2];

  /// Jobs that have not ended.
  std::unordered_map<job_id, job_ptr> live_;
  std::unordered_set<job_id> unreported_;
  slot_order slots_;
  std::vector<completion> done_;
  std::vector<host_fence> host_fences_;
};

error check_config(const cuda_engine_config& config) {
  if (!config.wake || !config.events)
    return {ec::invalid_options, "the copy engine needs a wake function and "
                                 "the events of its compute"};
  if (config.streams_per_direction == 0 || config.kernel_blocks == 0
      || config.bounce_bytes == 0)
    return {ec::invalid_options,
            "the copy engine needs at least one stream per direction, one "
            "thread block for its kernel and one byte of a bounce buffer"};
  return check_device(config.device);
}

} // namespace

result<std::unique_ptr<copy_engine>>
make_cuda_copy_engine(cuda_engine_config config) {
  if (auto refused = check_config(config); refused.code != ec::none)
    return refused;
  auto made = std::make_unique<cuda_copy_engine>(std::move(config));
  if (auto failed = made->start(); failed.code != ec::none)
    return failed;
  return std::unique_ptr<copy_engine>{std::move(made)};
}

} // namespace kvtide::gpu
