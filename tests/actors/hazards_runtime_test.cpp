// SPDX-License-Identifier: Apache-2.0

/// @file
/// Public failures of programs on CAF (docs/hazards.md) against a real runtime,
/// with its threads and its detached device. Nothing here measures time: what
/// hangs runs into the time limit of its case.

#include "kvtide/runtime.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

using namespace std::chrono_literals;

namespace kvtide::test {
namespace {

constexpr request_id Q = 'Q';
constexpr request_id R = 'R';

constexpr std::uint32_t blocks = 8;
constexpr std::uint64_t block_bytes = 64;

/// One thread for all pooled actors, and no timer that fires in a test.
options patient_options() {
  auto out = options{};
  out.groups.front().tokens_per_block = 4;
  out.blocks_per_chunk = 1;
  out.tokens_per_hash = 4;
  out.host_bytes = 4 * block_bytes;
  out.actor_threads = 1;
  out.job_deadline = 1h;
  out.idle_delay = 1h;
  return out;
}

/// A runtime, the engine that drives it and the one rank.
class whole_runtime {
public:
  whole_runtime()
    : memory_(blocks * block_bytes),
      runtime_(runtime::start(patient_options()).value()) {
    auto memory = kv_memory{};
    memory.tensors.push_back({memory_.data(), memory_.size(), memory_kind::host,
                              blocks, block_bytes, block_bytes});
    memory.references.push_back({0, 0, 0, 0, block_bytes});
    gpu().register_kv(memory);
    EXPECT_EQ(await<kv_registered>(gpu()).reason.code, ec::none);
  }

  runtime& engine() {
    return runtime_;
  }

  rank& gpu() {
    return runtime_.local_rank(0);
  }

  /// Adds a request with one chunk.
  void add(request_id id) {
    auto call = add_request{};
    call.request = id;
    call.prompt_tokens = call.known_tokens = 4;
    runtime_.add(call);
    auto keys = extend_keys{};
    keys.request = id;
    keys.hashes.emplace_back(&id, sizeof(id));
    runtime_.extend(keys);
  }

  step_plan step(std::vector<step_row> rows,
                 std::vector<request_id> preempted) {
    auto call = step_call{};
    call.step = ++last_step_;
    call.rows = std::move(rows);
    call.preempted = std::move(preempted);
    runtime_.step(call);
    return await<step_plan>(runtime_);
  }

  /// R computes its chunk, which a job is to store from block 1.
  /// @returns the event of that compute, which has not ended
  std::uint64_t begin_compute() {
    add(R);
    const auto plan = step({{R, row_kind::fresh, {{1}}, 0, 4, 4}}, {});
    EXPECT_EQ(plan.stores.size(), 1u);
    EXPECT_EQ(await<step_ready>(gpu()).step, 1u);
    const auto event = gpu().make_event().value();
    gpu().end_step(1, {event});
    return event;
  }

  /// The next answer or notice of that kind.
  template <class Event, class Side>
  Event await(Side& side) {
    // Only a broken runtime lets this pass.
    constexpr auto patience = std::chrono::seconds{30};
    for (;;) {
      if (auto found = take<Event>(side))
        return *found;
      if (!side.wait(patience)) {
        ADD_FAILURE() << "the runtime is silent";
        return {};
      }
    }
  }

  /// The same if it is there already.
  template <class Event, class Side>
  std::optional<Event> take(Side& side) {
    auto& heard = heard_by(side);
    for (auto& event : side.poll())
      heard.push_back(std::move(event));
    const auto i = std::find_if(heard.begin(), heard.end(), [](const auto& x) {
      return std::holds_alternative<Event>(x);
    });
    if (i == heard.end())
      return std::nullopt;
    auto out = std::get<Event>(std::move(*i));
    heard.erase(i);
    return out;
  }

private:
  std::vector<engine_event>& heard_by(runtime&) {
    return engine_heard_;
  }

  std::vector<rank_event>& heard_by(rank&) {
    return rank_heard_;
  }

  std::vector<std::byte> memory_;
  std::vector<engine_event> engine_heard_;
  std::vector<rank_event> rank_heard_;
  step_id last_step_ = 0;
  /// Goes before the memory that it copies.
  runtime runtime_;
};

std::size_t threads() {
  using std::filesystem::directory_iterator;
  return static_cast<std::size_t>(
    std::distance(directory_iterator{"/proc/self/task"}, directory_iterator{}));
}

/// A detached thread is gone a little after it said so.
void await_threads(std::size_t count) {
  while (threads() > count)
    std::this_thread::yield();
}

TEST(Hazards, CLF_01_a_runtime_ends_and_leaves_no_thread) {
  const auto before = threads();
  for (auto i = 0; i < 1'000; ++i) {
    auto uut = whole_runtime{};
    if (i % 5 != 0)
      continue;
    // With a store that waits for a compute event that never comes.
    (void)uut.begin_compute();
    const auto plan = uut.step({}, {});
    EXPECT_TRUE(plan.pending_work);
  }
  await_threads(before);
}

// A timer holds its actor: each of these deadlines is an hour away.
TEST(Hazards, CLF_02_no_timer_outlives_the_runtime) {
  const auto before = threads();
  {
    auto uut = whole_runtime{};
    (void)uut.begin_compute();          // The worker's: stores without a step.
    const auto plan = uut.step({}, {}); // The worker's: the job's deadline.
    EXPECT_TRUE(plan.pending_work);
    uut.add(Q);
    uut.engine().finish({Q, finish_reason::abort, 4, 0});
    (void)uut.await<finish_answer>(uut.engine()); // The scheduler's idle rule.
    uut.engine().shutdown(1h);                    // Its deadline, unanswered.
    uut.engine().get_stats();
    EXPECT_EQ(uut.await<stats_answer>(uut.engine()).values.jobs_in_flight, 1u);
    EXPECT_FALSE(uut.take<call_done>(uut.engine()).has_value());
  }
  await_threads(before);
}

// One thread runs all pooled actors, and a flush waits for a copy that waits
// for compute: everybody else goes on.
TEST(Hazards, CRQ_05_no_pooled_actor_waits_for_a_copy) {
  auto uut = whole_runtime{};
  const auto compute = uut.begin_compute();
  const auto plan = uut.step({}, {R});
  EXPECT_EQ(plan.flush, std::vector<job_id>{0});
  uut.add(Q);
  uut.engine().lookup({{Q, 0, 4}}); // Scheduler, request and cache manager.
  EXPECT_EQ(uut.await<lookup_answer>(uut.engine()).hits.size(), 1u);
  uut.engine().take_events();
  EXPECT_TRUE(uut.await<events_answer>(uut.engine()).events.empty());
  uut.gpu().end_step(7, {}); // Worker.
  EXPECT_EQ(uut.await<rank_failed>(uut.gpu()).reason.code, ec::out_of_order);
  EXPECT_FALSE(uut.take<step_ready>(uut.gpu()).has_value());
  uut.gpu().complete_event(compute);
  EXPECT_EQ(uut.await<step_ready>(uut.gpu()).step, 2u);
}

} // namespace
} // namespace kvtide::test
