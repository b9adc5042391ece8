// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/cuda_copies.hpp"

#include "gpu/cuda/bounce_buffer.hpp"
#include "gpu/cuda/cuda_copy_engine.hpp"
#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/handles.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>

namespace kvtide::explore {

namespace {

void require(const char* call, cudaError_t status) {
  if (const auto failed = gpu::check(call, status); failed.code != ec::none)
    throw std::runtime_error{failed.text};
}

template <class T>
T require(result<T> made) {
  if (!made)
    throw std::runtime_error{made.failure().text};
  return std::move(made).value();
}

const std::byte* bytes_at(const void* address) {
  return static_cast<const std::byte*>(address);
}

/// @pre `what` moves bytes between the pool and a pinned buffer
const std::vector<gpu::fragment>& moves_of(const stand_in::operation& what) {
  return static_cast<const gpu::bounce_move*>(what.host_data)->parts;
}

} // namespace

void start_cuda_machine(int devices) {
  auto wanted = stand_in::settings{};
  wanted.devices = devices;
  wanted.threads = 0;
  // The model of compute writes where the engine copies.
  wanted.host_can_use_device_addresses = true;
  // Whoever takes one address for the other is found out.
  wanted.registered_memory_has_other_device_address = true;
  stand_in::start(wanted);
}

// -- engine -------------------------------------------------------------------

/// The CUDA engine, and a note of what it is told and says.
class cuda_life final : public gpu::copy_engine {
public:
  cuda_life(cuda_copies& home, std::unique_ptr<gpu::copy_engine> engine)
    : home_(home), engine_(std::move(engine)) {
    // nop
  }

  ~cuda_life() override {
    // The engine waits for what is enqueued, and nobody else runs it now.
    home_.drain();
    engine_.reset();
    home_.close();
  }

  ec submit(gpu::copy_job job) override {
    home_.watcher_.submitted(home_.rank_, job);
    auto& added = home_.jobs_.emplace_back();
    added.job = job;
    for (const auto& part : job.fragments)
      added.bytes += part.bytes;
    const auto taken = engine_->submit(std::move(job));
    if (taken != ec::none)
      home_.jobs_.pop_back();
    return taken;
  }

  std::optional<fence> make_fence(step_id step,
                                  const std::vector<job_id>& jobs) override {
    home_.watcher_.fence_asked(home_.rank_, step, jobs);
    return engine_->make_fence(step, jobs);
  }

  void poll(std::vector<gpu::completion>& done,
            std::vector<step_id>& fences) override {
    const auto before = done.size();
    engine_->poll(done, fences);
    for (auto i = before; i < done.size(); ++i)
      home_.concluded(done[i]);
  }

  void advance(nanoseconds_t now) override {
    engine_->advance(now);
  }

  [[nodiscard]] bool advanced() const override {
    return engine_->advanced();
  }

  [[nodiscard]] nanoseconds_t next_due() const override {
    return engine_->next_due();
  }

  [[nodiscard]] std::size_t in_flight() const override {
    return engine_->in_flight();
  }

  [[nodiscard]] error lost() const override {
    return engine_->lost();
  }

private:
  cuda_copies& home_;
  std::unique_ptr<gpu::copy_engine> engine_;
};

// -- device -------------------------------------------------------------------

cuda_copies::cuda_copies(rank_id rank, int device, const copy_way& way,
                         std::uint64_t kv_bytes, copy_watcher& watcher,
                         findings& found)
  : rank_(rank), device_(device), way_(way), watcher_(watcher), found_(found),
    kv_bytes_(kv_bytes) {
  const gpu::device_scope scope{device_};
  memory_ = require(gpu::make_device_buffer(kv_bytes));
  compute_ = require(gpu::make_stream());
}

cuda_copies::~cuda_copies() {
  const gpu::device_scope scope{device_};
  if (lost()) {
    memory_.release();
    compute_.release();
  }
  memory_ = {};
  compute_ = {};
}

std::shared_ptr<gpu::pool_registration> cuda_copies::make_registrar() {
  pool_
    = way_.pinned ? require(gpu::pool_registration::make(device_)) : nullptr;
  return pool_;
}

std::unique_ptr<gpu::copy_engine>
cuda_copies::open(gpu::wake_function wake, std::shared_ptr<void> keep) {
  events_ = require(gpu::compute_events::make(device_));
  auto how = gpu::cuda_engine_config{};
  how.wake = std::move(wake);
  how.device = device_;
  how.events = events_;
  how.pool = pool_;
  how.path = way_.path;
  how.kernel_below = 0; // Nothing is measured here.
  how.slice_bytes = way_.slice_bytes;
  how.bytes_in_flight = way_.bytes_in_flight;
  how.streams_per_direction = way_.streams_per_direction;
  how.bounce_bytes = 128; // Less than a job needs.
  how.fences = way_.fences;
  // `drain` has left nothing to wait for.
  how.patience = std::chrono::milliseconds{0};
  how.keep = std::move(keep);
  how.fault = [this](job_id, job_kind) { return take_fault(); };
  auto engine = require(gpu::make_cuda_copy_engine(std::move(how)));
  return std::make_unique<cuda_life>(*this, std::move(engine));
}

void cuda_copies::compute(std::uint64_t fence,
                          const std::function<void()>& first_half,
                          const std::function<void()>& second_half) {
  const gpu::device_scope scope{device_};
  if (fence != 0)
    require("cudaStreamWaitEvent",
            ::cudaStreamWaitEvent(compute_.get(),
                                  reinterpret_cast<cudaEvent_t>(fence), 0));
  const auto launch = [&] {
    return stand_in::enqueue(compute_.get(), first_half, second_half,
                             {{memory_.get(), kv_bytes_}});
  };
  // It may meet faults that were meant for kernels that copy.
  auto status = launch();
  for (auto faults = 0; status != cudaSuccess && faults < 8; ++faults)
    status = launch();
  require("kernel", status);
}

std::uint64_t cuda_copies::record() {
  return require(events_->record(gpu::to_number(compute_.get())));
}

// -- what operations are for --------------------------------------------------

/// Destinations and sources come in pairs, behind the table of a kernel.
cuda_copies::kv_copy
cuda_copies::look_at(const stand_in::operation& what) const {
  auto out = kv_copy{};
  const auto* base = bytes_at(memory_.get());
  const auto on_device = [&](const stand_in::memory_range& x) {
    return bytes_at(x.address) >= base
        && bytes_at(x.address) < base + kv_bytes_;
  };
  for (auto i = what.touches.size() % 2; i + 1 < what.touches.size(); i += 2) {
    const auto& to = what.touches[i];
    const auto& from = what.touches[i + 1];
    if (!on_device(to) && !on_device(from))
      continue;
    out.kind = on_device(to) ? job_kind::load : job_kind::store;
    const auto& device = on_device(to) ? to : from;
    const auto& host = on_device(to) ? from : to;
    out.device.emplace_back(bytes_at(device.address), device.bytes);
    out.host.emplace_back(bytes_at(host.address), host.bytes);
    out.bytes += device.bytes;
  }
  return out;
}

void cuda_copies::see_through(kv_copy& what,
                              const std::vector<gpu::fragment>& moves) {
  for (auto& [first, bytes] : what.host)
    for (const auto& x : moves) {
      const auto store = what.kind == job_kind::store;
      const auto* buffer = bytes_at(store ? x.src : x.dst);
      if (first < buffer || first >= buffer + x.bytes)
        continue;
      first = bytes_at(store ? x.dst : x.src) + (first - buffer);
      break;
    }
}

/// The first job that has not all of its bytes and names these.
std::optional<job_id> cuda_copies::owner(const kv_copy& what) {
  const auto names = [](const job_view& x, bool device, const range& wanted) {
    const auto has = [&](const std::byte* at) {
      return std::any_of(x.job.fragments.begin(), x.job.fragments.end(),
                         [&](const gpu::fragment& part) {
                           const auto store = x.job.kind == job_kind::store;
                           const auto* first
                             = bytes_at(store == device ? part.src : part.dst);
                           return at >= first && at < first + part.bytes;
                         });
    };
    // Neighbours are copied as one.
    return has(wanted.first) && has(wanted.first + wanted.second - 1);
  };
  auto found = std::vector<job_view*>{};
  for (auto& x : jobs_) {
    if (x.whole || x.job.kind != what.kind)
      continue;
    const auto all = [&](const std::vector<range>& ranges, bool device) {
      return std::all_of(ranges.begin(), ranges.end(), [&](const range& one) {
        return names(x, device, one);
      });
    };
    if (all(what.device, true) && all(what.host, false))
      found.push_back(&x);
  }
  if (found.empty())
    return std::nullopt;
  for (auto* x : found)
    x->shared = x->shared || found.size() > 1;
  return found.front()->job.id;
}

cuda_copies::job_view* cuda_copies::find(job_id id) {
  const auto found
    = std::find_if(jobs_.begin(), jobs_.end(),
                   [id](const job_view& x) { return x.job.id == id; });
  return found != jobs_.end() ? &*found : nullptr;
}

cuda_copies::purpose cuda_copies::find_purpose(const stand_in::stream& where) {
  auto out = purpose{};
  out.of = where.queue.front();
  const auto& what = *out.of;
  const auto at_start = what.next_piece == 0;
  if (where.id == gpu::to_number(compute_.get())) {
    if (!what.pieces.empty())
      out.kind
        = at_start ? choice_kind::compute_start : choice_kind::compute_end;
    return out;
  }
  if (what.host_function && !way_.pinned) {
    // A load's buffer is filled before it is copied, a store's is emptied
    // afterwards.
    for (const auto& next : where.queue)
      if (auto copied = look_at(*next); !copied.device.empty()) {
        if (copied.kind == job_kind::load) {
          see_through(copied, moves_of(what));
          out.job = owner(copied);
        }
        break;
      }
    if (const auto last = last_jobs_.find(where.id);
        !out.job && last != last_jobs_.end())
      if (const auto* x = find(last->second);
          x != nullptr && !x->whole && x->job.kind == job_kind::store)
        out.job = last->second;
    out.moves_buffer = out.job.has_value();
  } else if (auto copied = look_at(what); !copied.device.empty()) {
    if (!way_.pinned && copied.kind == job_kind::load) {
      see_through(copied, buffers_[where.id]);
    } else if (!way_.pinned) {
      for (const auto& next : where.queue)
        if (next->host_function) {
          see_through(copied, moves_of(*next));
          break;
        }
    }
    out.job = owner(copied);
    out.bytes = copied.bytes;
    if (!out.job)
      found_.report("S9", "rank " + std::to_string(rank_)
                            + " copies bytes of no job that is in flight");
  }
  if (out.job)
    out.kind = at_start ? choice_kind::copy_start : choice_kind::copy_end;
  return out;
}

const cuda_copies::purpose&
cuda_copies::purpose_of(const stand_in::stream& where) {
  auto& known = purposes_[where.id];
  const auto& next = where.queue.front();
  if (known.of != next || (known.job && find(*known.job) == nullptr))
    known = find_purpose(where);
  else if (known.kind == choice_kind::copy_start && next->next_piece > 0)
    known.kind = choice_kind::copy_end;
  else if (known.kind == choice_kind::compute_start && next->next_piece > 0)
    known.kind = choice_kind::compute_end;
  return known;
}

// -- choices ------------------------------------------------------------------

std::vector<std::pair<stand_in::stream_ptr, choice>> cuda_copies::open_moves() {
  auto out = std::vector<std::pair<stand_in::stream_ptr, choice>>{};
  auto& m = stand_in::machine::current();
  const std::lock_guard lock{m.mutex};
  auto number = std::uint64_t{0};
  for (const auto& where : m.streams) {
    ++number;
    if (where->device != device_ || !m.can_run(*where))
      continue;
    const auto& what = purpose_of(*where);
    auto made = choice{what.kind, rank_, number, 0};
    if (what.job) {
      made.subject = *what.job;
      made.row = static_cast<std::uint32_t>(what.of->next_piece);
    } else if (what.kind != choice_kind::device_work) {
      made.subject = 0;
    }
    out.emplace_back(where, made);
  }
  return out;
}

std::vector<choice> cuda_copies::moves() {
  auto out = std::vector<choice>{};
  for (const auto& x : open_moves())
    out.push_back(x.second);
  return out;
}

void cuda_copies::run(const choice& what) {
  for (const auto& [where, made] : open_moves())
    if (made == what)
      return run_in(where);
  found_.report("life", "the device cannot do what it offered");
}

void cuda_copies::run_in(const stand_in::stream_ptr& where) {
  notice(*where);
  auto& m = stand_in::machine::current();
  const std::lock_guard lock{m.mutex};
  m.run_piece(where);
}

void cuda_copies::notice(const stand_in::stream& where) {
  const auto what = purpose_of(where);
  if (!what.job)
    return;
  auto& job = *find(*what.job);
  if (what.moves_buffer && job.job.kind == job_kind::load)
    buffers_[where.id] = moves_of(*what.of);
  if (!std::exchange(job.started, true))
    watcher_.starts(rank_, job.job.id);
  const auto last = what.of->next_piece + 1 >= what.of->pieces.size();
  if (last && !what.moves_buffer) {
    job.moved += what.bytes;
    last_jobs_[where.id] = job.job.id;
  }
  const auto through_buffer = !way_.pinned && job.job.kind == job_kind::store;
  if (last && !job.shared && job.moved == job.bytes
      && what.moves_buffer == through_buffer) {
    job.whole = true;
    watcher_.ends(rank_, job.job.id, true);
  }
}

// -- faults -------------------------------------------------------------------

gpu::copy_fault cuda_copies::take_fault() {
  auto out = gpu::copy_fault{};
  if (!next_fault_)
    return out;
  out.kind = gpu::fault_kind::fail;
  out.row = *std::exchange(next_fault_, std::nullopt);
  return out;
}

void cuda_copies::fail_calls() const {
  const auto fail = [](const char* call) {
    stand_in::fail_call(call, 1, cudaErrorInvalidValue);
  };
  if (way_.path == copy_path::kernel)
    fail("kernel");
  if (way_.path != copy_path::plain)
    fail("cudaMemcpyBatchAsync");
  fail("cudaMemcpyAsync");
}

void cuda_copies::lose() {
  stand_in::lose_context(device_);
}

bool cuda_copies::lost() const {
  auto& m = stand_in::machine::current();
  const std::lock_guard lock{m.mutex};
  return m.context_of(device_) != cudaSuccess;
}

// -- ends ---------------------------------------------------------------------

void cuda_copies::concluded(const gpu::completion& how) {
  auto* job = find(how.job);
  if (job == nullptr)
    return found_.report("S9", "the engine of rank " + std::to_string(rank_)
                                 + " says how job " + std::to_string(how.job)
                                 + " ended, which it does not have");
  const auto done = how.result == gpu::copy_result::done;
  if (done && !job->whole && !job->shared && job->bytes > 0)
    found_.report("S9", "the engine of rank " + std::to_string(rank_)
                          + " says that job " + std::to_string(how.job)
                          + " has ended, but only " + std::to_string(job->moved)
                          + " of " + std::to_string(job->bytes)
                          + " bytes were moved");
  if (done && !job->started)
    watcher_.starts(rank_, how.job);
  if (!job->whole)
    watcher_.ends(rank_, how.job, done);
  jobs_.erase(jobs_.begin() + (job - jobs_.data()));
}

void cuda_copies::drain() {
  const auto is_compute = [](const auto& x) {
    return x.second.kind == choice_kind::compute_start
        || x.second.kind == choice_kind::compute_end;
  };
  const auto waits = [this] {
    auto& m = stand_in::machine::current();
    const std::lock_guard lock{m.mutex};
    return std::any_of(m.streams.begin(), m.streams.end(), [&](const auto& x) {
      return x->device == device_ && x->id != gpu::to_number(compute_.get())
          && !x->queue.empty();
    });
  };
  while (waits()) {
    const auto open = open_moves();
    if (open.empty()) {
      if (!lost())
        found_.report("life", "what the engine of rank " + std::to_string(rank_)
                                + " has enqueued never ends");
      return;
    }
    const auto next = std::find_if_not(open.begin(), open.end(), is_compute);
    run_in(next != open.end() ? next->first : open.front().first);
  }
}

void cuda_copies::finish() {
  for (auto open = open_moves(); !open.empty(); open = open_moves())
    run_in(open.front().first);
}

void cuda_copies::close() {
  for (const auto& x : jobs_)
    if (!x.whole)
      watcher_.ends(rank_, x.job.id, false);
  jobs_.clear();
  last_jobs_.clear();
  buffers_.clear();
  next_fault_.reset();
  events_.reset();
  pool_.reset();
}

} // namespace kvtide::explore
