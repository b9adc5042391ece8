// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_copy_engine.hpp"

#include "gpu/each_once.hpp"
#include "gpu/fragments.hpp"
#include "gpu/slot_order.hpp"
#include "gpu/start_engine.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kvtide::gpu {

namespace {

using clock = std::chrono::steady_clock;

/// A moment that the clock can still express is all that "very slow" needs.
constexpr nanoseconds_t longest_copy = 1'000'000'000ll * 86'400 * 365;

class host_copy_engine final : public copy_engine {
public:
  explicit host_copy_engine(host_engine_config config)
    : config_(std::move(config)),
      streams_(std::size_t{2} * config_.streams_per_direction) {
    // nop
  }

  ~host_copy_engine() override {
    stop_.request_stop();
    for (auto& thread : threads_)
      thread.join();
  }

  /// @throws std::system_error if the system refuses a thread.
  void start() {
    threads_.reserve(streams_.size());
    for (auto& mine : streams_)
      threads_.emplace_back([this, &mine] { run_stream(mine); });
  }

  ec submit(copy_job job) override {
    auto fault = config_.fault ? config_.fault(job.id, job.kind) : copy_fault{};
    const std::lock_guard lock{mutex_};
    if (!unreported_.insert(job.id).second)
      return ec::invalid_argument;
    auto owned = std::make_unique<running_job>();
    auto* added = owned.get();
    auto before = job.after;
    slots_.add(job.id, job.kind, job.slots, before);
    for (const auto id : each_once(std::move(before))) {
      if (const auto found = jobs_.find(id); found != jobs_.end()) {
        found->second->dependents.push_back(added);
        ++added->blockers;
      }
    }
    added->home = &stream_for(job.kind);
    added->fault = fault;
    added->job = std::move(job);
    jobs_.emplace(added->job.id, std::move(owned));
    added->home->queue.push_back(added);
    wake_stream_of(*added);
    return ec::none;
  }

  std::optional<fence> make_fence(step_id step,
                                  const std::vector<job_id>& jobs) override {
    const std::lock_guard lock{mutex_};
    auto state = std::make_shared<pending_fence>();
    state->step = step;
    for (const auto id : jobs) {
      if (const auto found = jobs_.find(id); found != jobs_.end()) {
        found->second->fences.push_back(state);
        ++state->jobs;
      }
    }
    return state->jobs > 0 ? std::nullopt : std::optional{fence{}};
  }

  void poll(std::vector<completion>& done,
            std::vector<step_id>& fences) override {
    const std::lock_guard lock{mutex_};
    for (auto& ended : done_) {
      unreported_.erase(ended.job);
      done.push_back(std::move(ended));
    }
    fences.insert(fences.end(), ready_fences_.begin(), ready_fences_.end());
    done_.clear();
    ready_fences_.clear();
  }

  std::size_t in_flight() const override {
    const std::lock_guard lock{mutex_};
    return unreported_.size();
  }

private:
  struct pending_fence {
    step_id step = 0;
    /// Jobs that have not ended, each as often as the call named it.
    std::size_t jobs = 0;
  };

  struct stream;

  struct running_job {
    copy_job job;
    copy_fault fault;
    stream* home = nullptr;
    /// Jobs that must end before this one starts.
    std::size_t blockers = 0;
    std::vector<running_job*> dependents;
    std::vector<std::shared_ptr<pending_fence>> fences;
  };

  struct stream {
    std::deque<running_job*> queue;
    /// The first job may run. For this stream alone: a thread that is woken for
    /// nothing takes the lock, and the time, from those that copy.
    std::condition_variable_any changed;

    [[nodiscard]] bool may_run() const {
      return !queue.empty() && queue.front()->blockers == 0;
    }

    /// @pre `may_run()`
    running_job* take() {
      auto* first = queue.front();
      queue.pop_front();
      return first;
    }
  };

  // -- called with the lock held ----------------------------------------------

  stream& stream_for(job_kind kind) {
    const auto direction = static_cast<std::size_t>(kind);
    const auto turn = turns_[direction]++ % config_.streams_per_direction;
    return streams_[direction * config_.streams_per_direction + turn];
  }

  /// Nobody has to hear of a job behind others: their thread comes to it.
  static void wake_stream_of(const running_job& job) {
    auto& home = *job.home;
    if (home.may_run() && home.queue.front() == &job)
      home.changed.notify_one();
  }

  void end_job(running_job& ended, completion outcome) {
    slots_.remove(ended.job.id, ended.job.slots);
    for (auto* dependent : ended.dependents)
      if (--dependent->blockers == 0)
        wake_stream_of(*dependent);
    for (const auto& waiting : ended.fences)
      if (--waiting->jobs == 0)
        ready_fences_.push_back(waiting->step);
    done_.push_back(std::move(outcome));
    jobs_.erase(ended.job.id);
  }

  // -- called without the lock, by the threads --------------------------------

  void run_stream(stream& mine) {
    const auto stop = stop_.get_token();
    running_job* job = nullptr;
    for (;;) {
      if (job == nullptr) {
        std::unique_lock lock{mutex_};
        mine.changed.wait(lock, stop, [&mine] { return mine.may_run(); });
        if (!stop.stop_requested())
          job = mine.take();
      }
      if (stop.stop_requested())
        return;
      auto outcome = completion{};
      outcome.job = job->job.id;
      if (!run_job(*job, stop, outcome))
        return;
      {
        // Ends a job and takes the next one: whoever was woken would else hold
        // the lock while the stream wants to go on.
        const std::lock_guard lock{mutex_};
        end_job(*job, std::move(outcome));
        job = mine.may_run() ? mine.take() : nullptr;
      }
      config_.wake();
    }
  }

  /// @returns false if the engine is stopping.
  bool run_job(const running_job& running, const std::stop_token& stop,
               completion& outcome) {
    const auto& job = running.job;
    for (const auto event : job.after_events) {
      if (state_of(event) == event_state::unknown) {
        outcome.result = copy_result::failed;
        outcome.text = "compute event " + std::to_string(event.handle)
                     + " was never created; nothing was copied";
        return true;
      }
      if (!config_.events->wait(event.handle, stop))
        return false;
    }
    const auto begin = clock::now();
    const auto total = total_bytes(job.fragments);
    auto copied = total;
    auto time = copy_time(total, config_.latency, config_.bytes_per_second);
    switch (running.fault.kind) {
      case fault_kind::none:
        break;
      case fault_kind::fail:
        copied = bytes_before_row(job.fragments, running.fault.row);
        outcome.result = copy_result::failed;
        outcome.first_failed_row = running.fault.row;
        outcome.text = "injected failure of job " + std::to_string(job.id);
        break;
      case fault_kind::delay:
        time = later_by(time, running.fault.delay);
        break;
      case fault_kind::hang:
        time = never;
        break;
    }
    outcome.copy_ns = timed_copy(job.fragments, 0, copied);
    outcome.bytes = copied;
    if (time == never) {
      std::unique_lock lock{mutex_};
      running.home->changed.wait(lock, stop, [] { return false; });
    } else if (time > 0) {
      const auto end
        = begin + std::chrono::nanoseconds{std::min(time, longest_copy)};
      std::unique_lock lock{mutex_};
      running.home->changed.wait_until(lock, stop, end, [] { return false; });
    }
    return !stop.stop_requested();
  }

  event_state state_of(compute_event event) const {
    return config_.events ? config_.events->state(event.handle)
                          : event_state::unknown;
  }

  const host_engine_config config_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  /// Stores first, then loads; the vector itself never changes.
  std::vector<stream> streams_;
  std::size_t turns_[2] = {0, 0};
  /// Jobs that have not ended.
  std::unordered_map<job_id, std::unique_ptr<running_job>> jobs_;
  std::unordered_set<job_id> unreported_;
  slot_order slots_;
  std::vector<completion> done_;
  std::vector<step_id> ready_fences_;
  std::vector<std::thread> threads_;
};

} // namespace

result<std::unique_ptr<copy_engine>>
make_host_copy_engine(host_engine_config config) {
  return start_engine<host_copy_engine>(std::move(config));
}

} // namespace kvtide::gpu
