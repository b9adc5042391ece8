// SPDX-License-Identifier: Apache-2.0

#include "gpu/fragments.hpp"
#include "gpu/host_copy_engine.hpp"
#include "gpu/slot_order.hpp"
#include "gpu/start_engine.hpp"

#include <algorithm>
#include <compare>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kvtide::gpu {

namespace {

/// Two parts with one border. The timetable (which job starts and ends when)
/// belongs to the caller's thread alone and is complete at `submit`. The
/// copying belongs to the threads, which take halves from one queue, one at a
/// time and in its order. Only the queue is shared.
class virtual_copy_engine final : public copy_engine {
public:
  explicit virtual_copy_engine(host_engine_config config)
    : config_(std::move(config)),
      last_jobs_(std::size_t{2} * config_.streams_per_direction) {
    // nop
  }

  ~virtual_copy_engine() override {
    {
      const std::lock_guard lock{mutex_};
      stopping_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_)
      thread.join();
  }

  /// @throws std::system_error if the system refuses a thread.
  void start() {
    threads_.reserve(last_jobs_.size());
    for (std::size_t i = 0; i < last_jobs_.size(); ++i)
      threads_.emplace_back([this, i] { run_stream(i); });
  }

  ec submit(copy_job job) override {
    if (jobs_.count(job.id) > 0)
      return ec::invalid_argument;
    auto owned = std::make_unique<timed_job>();
    auto& added = *owned;
    const auto id = job.id;
    added.job = std::move(job);
    added.number = next_number_++;
    added.outcome.job = id;
    set_times(added);
    jobs_.emplace(id, std::move(owned));
    return ec::none;
  }

  std::optional<fence> make_fence(step_id,
                                  const std::vector<job_id>& jobs) override {
    auto latest = nanoseconds_t{-1};
    const auto all_copied = advanced();
    for (const auto id : jobs) {
      const auto found = jobs_.find(id);
      if (found != jobs_.end() && !(found->second->covered && all_copied))
        latest = std::max(latest, found->second->due);
    }
    if (latest < 0)
      return fence{};
    return fence{fence::kind_t::event, static_cast<std::uint64_t>(latest)};
  }

  void poll(std::vector<completion>& done, std::vector<step_id>&) override {
    if (!advanced())
      return;
    for (auto* ended : covered_) {
      slots_.remove(ended->job.id, ended->job.slots);
      done.push_back(std::move(ended->outcome));
      jobs_.erase(ended->job.id);
    }
    covered_.clear();
  }

  void advance(nanoseconds_t now) override {
    now_ = std::max(now_, now);
    const auto first = covered_.size();
    std::vector<half> due;
    while (!events_.empty() && events_.begin()->first.moment <= now_) {
      const auto [key, job] = *events_.begin();
      events_.erase(events_.begin());
      due.push_back({job, key.second_half});
      if (key.second_half) {
        job->covered = true;
        covered_.push_back(job);
      }
    }
    // The order of copying follows the constraints, which point back in the
    // order of submission; the order of announcing follows the ids.
    std::sort(
      covered_.begin() + static_cast<std::ptrdiff_t>(first), covered_.end(),
      [](const timed_job* x, const timed_job* y) {
        return std::pair{x->due, x->job.id} < std::pair{y->due, y->job.id};
      });
    enqueue(due);
  }

  bool advanced() const override {
    const std::lock_guard lock{mutex_};
    return queue_.empty() && !copying_;
  }

  nanoseconds_t next_due() const override {
    return events_.empty() ? never : events_.begin()->first.moment;
  }

  std::size_t in_flight() const override {
    return jobs_.size();
  }

private:
  struct timed_job {
    copy_job job;
    /// Ascending in the order of `submit`.
    std::uint64_t number = 0;
    nanoseconds_t start = 0;
    nanoseconds_t due = 0;
    /// Bytes that are really copied, and where the first half ends.
    std::uint64_t bytes = 0;
    std::uint64_t middle = 0;
    std::size_t stream = 0;
    /// An `advance` has passed `due`.
    bool covered = false;
    /// The threads add `copy_ns`, with the lock held.
    completion outcome;
  };

  struct half {
    timed_job* job = nullptr;
    bool second = false;
  };

  struct event_key {
    nanoseconds_t moment = 0;
    std::uint64_t number = 0;
    bool second_half = false;

    friend auto operator<=>(const event_key&, const event_key&) = default;
  };

  // -- timetable --------------------------------------------------------------

  void set_times(timed_job& added) {
    auto& job = added.job;
    const auto direction = static_cast<std::size_t>(job.kind);
    added.stream = direction * config_.streams_per_direction
                 + turns_[direction]++ % config_.streams_per_direction;
    auto& last = last_jobs_[added.stream];
    auto before = job.after;
    slots_.add(job.id, job.kind, job.slots, before);
    if (last)
      before.push_back(*last);
    added.start = now_;
    // An earlier job that is due by now but was not advanced over yet still
    // has its second half before it.
    auto held = false;
    for (const auto id : before) {
      if (const auto found = jobs_.find(id); found != jobs_.end()) {
        added.start = std::max(added.start, found->second->due);
        held = held || !found->second->covered;
      }
    }
    for (const auto event : job.after_events)
      added.start = std::max(
        added.start, static_cast<nanoseconds_t>(std::min(
                       event.handle, static_cast<std::uint64_t>(never))));
    set_end(added);
    // A job that hangs behind another one does not even start.
    if (added.start != never)
      plan_first_half(added, held);
    if (added.due == never)
      return; // It does not keep its stream busy.
    last = job.id;
    events_.emplace(event_key{added.due, added.number, true}, &added);
  }

  void set_end(timed_job& added) {
    const auto& job = added.job;
    added.bytes = total_bytes(job.fragments);
    added.middle = added.bytes / 2;
    added.due = later_by(added.start, copy_time(added.bytes, config_.latency,
                                                config_.bytes_per_second));
    const auto fault
      = config_.fault ? config_.fault(job.id, job.kind) : copy_fault{};
    switch (fault.kind) {
      case fault_kind::none:
        break;
      case fault_kind::fail:
        added.bytes = bytes_before_row(job.fragments, fault.row);
        added.middle = added.bytes / 2;
        added.outcome.result = copy_result::failed;
        added.outcome.first_failed_row = fault.row;
        added.outcome.text
          = "injected failure of job " + std::to_string(job.id);
        break;
      case fault_kind::delay:
        added.due = later_by(added.due, fault.delay);
        break;
      case fault_kind::hang:
        added.due = never;
        break;
    }
    added.outcome.due = added.due;
    added.outcome.bytes = added.bytes;
  }

  void plan_first_half(timed_job& added, bool held) {
    if (added.start <= now_ && !held)
      enqueue({{&added, false}});
    else
      events_.emplace(event_key{added.start, added.number, false}, &added);
  }

  // -- copying ----------------------------------------------------------------

  void enqueue(const std::vector<half>& halves) {
    if (halves.empty())
      return;
    {
      const std::lock_guard lock{mutex_};
      queue_.insert(queue_.end(), halves.begin(), halves.end());
    }
    changed_.notify_all();
  }

  void run_stream(std::size_t index) {
    std::unique_lock lock{mutex_};
    for (;;) {
      changed_.wait(lock, [this, index] {
        return stopping_
            || (!copying_ && !queue_.empty()
                && queue_.front().job->stream == index);
      });
      if (stopping_)
        return;
      const auto next = queue_.front();
      queue_.pop_front();
      copying_ = true;
      lock.unlock();
      auto& job = *next.job;
      const auto took
        = timed_copy(job.job.fragments, next.second ? job.middle : 0,
                     next.second ? job.bytes : job.middle);
      lock.lock();
      job.outcome.copy_ns += took;
      copying_ = false;
      if (queue_.empty()) {
        lock.unlock();
        config_.wake();
        lock.lock();
      } else if (queue_.front().job->stream != index) {
        changed_.notify_all();
      }
    }
  }

  const host_engine_config config_;

  // The timetable.
  nanoseconds_t now_ = 0;
  std::uint64_t next_number_ = 0;
  /// The last job of each stream; stores first, then loads.
  std::vector<std::optional<job_id>> last_jobs_;
  std::size_t turns_[2] = {0, 0};
  /// Jobs that were not reported yet.
  std::unordered_map<job_id, std::unique_ptr<timed_job>> jobs_;
  slot_order slots_;
  /// Starts and ends that no `advance` has covered.
  std::map<event_key, timed_job*> events_;
  /// In the order in which they will be announced.
  std::vector<timed_job*> covered_;

  // The copying.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<half> queue_;
  bool copying_ = false;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace

result<std::unique_ptr<copy_engine>>
make_virtual_copy_engine(host_engine_config config) {
  return start_engine<virtual_copy_engine>(std::move(config));
}

} // namespace kvtide::gpu
