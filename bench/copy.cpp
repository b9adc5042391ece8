// SPDX-License-Identifier: Apache-2.0

// Does the host engine copy as fast as one thread with memcpy?
//
//   bench-copy --benchmark_filter=fragment:65536
//
// A batch has 64 MiB in fragments of one size, between blocks that lie
// scattered on the device's side and slots that follow one another. In each
// round the engine, with one stream and no limits, and memcpy on the caller's
// thread copy the same batch, in turns first, so that both see the same
// machine.
//
//   engine/memcpy    rate of the engine by that of memcpy in the same round
//   engine, memcpy   GiB/s
//
// each as p10, p50 and p90 of all rounds. The engine's time is that of its
// owner: from the first `submit` until `poll` has reported every job.

#include "gpu/host_copy_engine.hpp"
#include "gpu/host_memory.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

constexpr std::uint64_t batch_bytes = 64u << 20;
constexpr auto warm_up_rounds = 4;
constexpr auto rounds = 64;

/// Both sides of the copies, and the jobs of a batch.
class batch {
public:
  batch(job_kind kind, std::uint64_t fragment_bytes, std::size_t jobs)
    : kind_(kind) {
    const auto count = batch_bytes / fragment_bytes;
    // Twice the room, so that neighbours in a batch are seldom neighbours in
    // memory.
    auto places = std::vector<std::uint64_t>(2 * count);
    std::iota(places.begin(), places.end(), std::uint64_t{0});
    std::shuffle(places.begin(), places.end(), std::mt19937_64{1});
    for (std::uint64_t job = 0; job < jobs; ++job) {
      auto made = copy_job{};
      made.kind = kind;
      made.slots = {static_cast<slot_id>(job)};
      for (auto i = job * count / jobs; i < (job + 1) * count / jobs; ++i) {
        auto* block = blocks_.data() + places[i] * fragment_bytes;
        auto* slot = slots_.data() + i * fragment_bytes;
        made.fragments.push_back(kind == job_kind::store
                                   ? fragment{slot, block, fragment_bytes, 0}
                                   : fragment{block, slot, fragment_bytes, 0});
      }
      jobs_.push_back(std::move(made));
    }
  }

  /// For one round of the engine.
  [[nodiscard]] std::vector<copy_job> jobs(job_id first) const {
    auto out = jobs_;
    for (auto& job : out)
      job.id = first++;
    return out;
  }

  void copy_by_memcpy() const {
    for (const auto& job : jobs_)
      for (const auto& part : job.fragments)
        std::memcpy(part.dst, part.src, part.bytes);
  }

  /// Makes both sides different everywhere.
  void spoil() {
    std::memset(blocks_.data(), kind_ == job_kind::store ? 1 : 2,
                blocks_.bytes());
    std::memset(slots_.data(), kind_ == job_kind::store ? 2 : 1,
                slots_.bytes());
  }

  [[nodiscard]] bool copied() const {
    for (const auto& job : jobs_)
      for (const auto& part : job.fragments)
        if (std::memcmp(part.dst, part.src, part.bytes) != 0)
          return false;
    return true;
  }

private:
  job_kind kind_;
  host_memory blocks_ = host_memory::map(2 * batch_bytes, {true, 0}).value();
  host_memory slots_ = host_memory::map(batch_bytes, {true, 0}).value();
  std::vector<copy_job> jobs_;
};

/// An engine and its owner.
class owner {
public:
  owner() {
    auto config = host_engine_config{};
    config.wake = [this] {
      {
        const std::lock_guard lock{mutex_};
        woken_ = true;
      }
      changed_.notify_one();
    };
    engine_ = make_host_copy_engine(std::move(config)).value();
  }

  /// @returns false if a job was refused or failed
  bool copy(std::vector<copy_job> jobs) {
    auto left = jobs.size();
    for (auto& job : jobs)
      if (engine_->submit(std::move(job)) != ec::none)
        return false;
    auto done = std::vector<completion>{};
    auto fences = std::vector<step_id>{};
    while (left > 0) {
      {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [this] { return woken_; });
        woken_ = false;
      }
      done.clear();
      engine_->poll(done, fences);
      for (const auto& ended : done)
        if (ended.result != copy_result::done)
          return false;
      left -= done.size();
    }
    return true;
  }

private:
  // These outlive the engine, whose threads use them.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  std::unique_ptr<copy_engine> engine_;
};

/// @returns seconds
template <class Fun>
double time_of(Fun fun) {
  const auto start = std::chrono::steady_clock::now();
  fun();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double>{end - start}.count();
}

double gib_per_second(double seconds) {
  return static_cast<double>(batch_bytes) / seconds / (1u << 30);
}

/// @pre `values` is not empty
void report(benchmark::State& state, const std::string& name,
            std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = [&](double part) {
    return values[static_cast<std::size_t>(part * last)];
  };
  state.counters[name + "_p50"] = at(0.5);
  state.counters[name + "_p10"] = at(0.1);
  state.counters[name + "_p90"] = at(0.9);
}

void copy(benchmark::State& state, job_kind kind) {
  auto what = batch{kind, static_cast<std::uint64_t>(state.range(0)),
                    static_cast<std::size_t>(state.range(1))};
  auto uut = owner{};
  auto next = job_id{0};
  const auto by_engine = [&] {
    // What the owner makes of a plan is not the engine's time.
    auto jobs = what.jobs(next);
    next += jobs.size();
    return time_of([&] {
      if (!uut.copy(std::move(jobs)))
        state.SkipWithError("a job failed");
    });
  };
  const auto by_memcpy
    = [&] { return time_of([&] { what.copy_by_memcpy(); }); };
  // Nothing is as fast as an engine that copies nothing.
  what.spoil();
  (void)by_engine();
  if (!what.copied())
    return state.SkipWithError("the engine copied something else");
  for (auto i = 0; i < warm_up_rounds; ++i) {
    (void)by_engine();
    (void)by_memcpy();
  }
  auto engine = std::vector<double>{};
  auto plain = std::vector<double>{};
  auto ratio = std::vector<double>{};
  auto engine_first = false;
  for (auto _ : state) {
    engine_first = !engine_first;
    auto memcpy_time = engine_first ? 0.0 : by_memcpy();
    const auto engine_time = by_engine();
    if (engine_first)
      memcpy_time = by_memcpy();
    engine.push_back(gib_per_second(engine_time));
    plain.push_back(gib_per_second(memcpy_time));
    ratio.push_back(memcpy_time / engine_time);
    state.SetIterationTime(engine_time);
  }
  if (ratio.empty())
    return;
  // Counters are printed in the order of their names: the ratio is the first.
  report(state, "engine/memcpy", std::move(ratio));
  report(state, "engine", std::move(engine));
  report(state, "memcpy", std::move(plain));
}

void all_sizes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"fragment", "jobs"})
    ->ArgsProduct({{4 << 10, 64 << 10, 1 << 20}, {1, 64}})
    ->Iterations(rounds)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(copy, store, job_kind::store)->Apply(all_sizes);
BENCHMARK_CAPTURE(copy, load, job_kind::load)->Apply(all_sizes);

} // namespace
} // namespace kvtide::gpu
