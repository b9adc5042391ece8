// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/copy_desk.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace kvtide::explore {

namespace {

/// Every `stride`-th eight bytes, from the `first` on.
void copy_cells(const gpu::fragment& part, std::uint64_t first,
                std::uint64_t stride) {
  const auto cells = part.bytes / sizeof(std::uint64_t);
  auto* dst = static_cast<std::uint64_t*>(part.dst);
  const auto* src = static_cast<const std::uint64_t*>(part.src);
  for (auto i = first; i < cells; i += stride)
    dst[i] = src[i];
}

} // namespace

// -- engine -------------------------------------------------------------------

class desk_engine : public gpu::copy_engine {
public:
  explicit desk_engine(copy_desk& desk) : desk_(desk) {
    // nop
  }

  ~desk_engine() override {
    desk_.close();
  }

  ec submit(gpu::copy_job job) override {
    if (desk_.in_flight(job.id))
      return ec::invalid_argument;
    desk_.watcher_.submitted(desk_.rank_, job);
    auto added = copy_desk::entry{};
    desk_.order_.add(job.id, job.kind, job.slots, job.after);
    added.job = std::move(job);
    const auto id = added.job.id;
    desk_.jobs_.emplace(id, std::move(added));
    return ec::none;
  }

  std::optional<fence> make_fence(step_id step,
                                  const std::vector<job_id>& jobs) override {
    desk_.watcher_.fence_asked(desk_.rank_, step, jobs);
    if (desk_.stream_fences_) {
      desk_.events_.push_back({step, jobs});
      return fence{fence::kind_t::event, desk_.events_.size()};
    }
    if (!desk_.any_in_flight(jobs))
      return fence{};
    desk_.waiting_.push_back({step, jobs});
    return std::nullopt;
  }

  void poll(std::vector<gpu::completion>& done,
            std::vector<step_id>& fences) override {
    for (auto& x : std::exchange(desk_.ended_, {}))
      done.push_back(std::move(x));
    std::erase_if(desk_.waiting_, [&](const copy_desk::fence_entry& x) {
      if (desk_.any_in_flight(x.jobs))
        return false;
      fences.push_back(x.step);
      return true;
    });
  }

  void advance(nanoseconds_t) override {
    // nop
  }

  [[nodiscard]] bool advanced() const override {
    return true;
  }

  [[nodiscard]] nanoseconds_t next_due() const override {
    return never;
  }

  [[nodiscard]] std::size_t in_flight() const override {
    return desk_.jobs_.size() + desk_.ended_.size();
  }

private:
  copy_desk& desk_;
};

// -- desk ---------------------------------------------------------------------

copy_desk::copy_desk(rank_id rank, copy_watcher& watcher,
                     std::function<bool(std::uint64_t)> event_over,
                     bool stream_fences)
  : rank_(rank), watcher_(watcher), event_over_(std::move(event_over)),
    stream_fences_(stream_fences) {
  // nop
}

std::unique_ptr<gpu::copy_engine> copy_desk::open(gpu::wake_function wake) {
  wake_ = std::move(wake);
  return std::make_unique<desk_engine>(*this);
}

std::vector<job_id> copy_desk::startable() const {
  auto out = std::vector<job_id>{};
  for (const auto& [id, x] : jobs_)
    if (!x.started && !any_in_flight(x.job.after)
        && std::all_of(x.job.after_events.begin(), x.job.after_events.end(),
                       [this](const gpu::compute_event& event) {
                         return event_over_(event.handle);
                       }))
      out.push_back(id);
  return out;
}

std::vector<job_id> copy_desk::running() const {
  auto out = std::vector<job_id>{};
  for (const auto& [id, x] : jobs_)
    if (x.started)
      out.push_back(id);
  return out;
}

void copy_desk::start(job_id id) {
  auto& x = jobs_.at(id);
  watcher_.starts(rank_, id);
  x.started = true;
  move_bytes(x.job, true);
}

void copy_desk::end(job_id id) {
  watcher_.ends(rank_, id, true);
  move_bytes(jobs_.at(id).job, false);
  auto out = gpu::completion{};
  out.job = id;
  conclude(id, std::move(out));
}

std::vector<std::uint32_t> copy_desk::rows_to_fail(job_id id) const {
  auto last = std::uint32_t{0};
  for (const auto& part : jobs_.at(id).job.fragments)
    last = std::max(last, part.row);
  auto out = std::vector<std::uint32_t>{0, last / 2, last};
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void copy_desk::fail(job_id id, std::uint32_t row) {
  watcher_.ends(rank_, id, false);
  for (const auto& part : jobs_.at(id).job.fragments)
    if (part.row < row)
      copy_cells(part, 0, 1);
  auto out = gpu::completion{};
  out.job = id;
  out.result = gpu::copy_result::failed;
  out.first_failed_row = row;
  out.text = "as the run wants";
  conclude(id, std::move(out));
}

bool copy_desk::fence_over(std::uint64_t handle) const {
  return handle == 0 || handle > events_.size()
      || !any_in_flight(events_[handle - 1].jobs);
}

/// Every other eight bytes, so that whoever looks in between sees a torn chunk.
void copy_desk::move_bytes(const gpu::copy_job& job, bool first_half) {
  for (const auto& part : job.fragments)
    copy_cells(part, first_half ? 0 : 1, 2);
}

void copy_desk::conclude(job_id id, gpu::completion how) {
  order_.remove(id, jobs_.at(id).job.slots);
  jobs_.erase(id);
  ended_.push_back(std::move(how));
  wake_();
}

bool copy_desk::any_in_flight(const std::vector<job_id>& ids) const {
  return std::any_of(ids.begin(), ids.end(),
                     [this](job_id id) { return in_flight(id); });
}

void copy_desk::close() {
  for (auto& [id, x] : jobs_) {
    watcher_.ends(rank_, id, x.started);
    if (x.started)
      move_bytes(x.job, false);
  }
  jobs_.clear();
  order_ = {};
  ended_.clear();
  waiting_.clear();
}

} // namespace kvtide::explore
