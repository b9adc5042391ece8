// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the host process hears when actors of a real runtime die, and how it
/// goes on.

#include "kvtide/runtime.hpp"

#include "tests/actors/silent_engine.hpp"
#include "tests/support/ear.hpp"
#include "tests/support/runtime_access.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace kvtide {
namespace {

using access = runtime_access;
using test::ear;
using test::patience;

template <class Handle>
void kill(const Handle& actor) {
  caf::anon_send_exit(actor, caf::exit_reason::kill);
}

constexpr std::size_t block_bytes = 64;
constexpr std::uint64_t blocks = 8;

class Runtime : public ::testing::Test {
protected:
  Runtime() {
    opts.groups.front().tokens_per_block = 4;
    opts.blocks_per_chunk = 1;
    opts.tokens_per_hash = 4;
    opts.host_bytes = 16 * block_bytes;
    uut.emplace(runtime::start(opts).value());
  }

  rank& side() {
    return uut->local_rank(0);
  }

  template <class Event>
  std::optional<Event> on_rank() {
    return rank_ear.await<Event>(side());
  }

  template <class Event>
  std::optional<Event> on_engine() {
    return engine_ear.await<Event>(*uut);
  }

  void register_memory() {
    auto kv = kv_memory{};
    kv.tensors.push_back({});
    kv.tensors.back().base = gpu.data();
    kv.tensors.back().bytes = gpu.size();
    kv.tensors.back().blocks = blocks;
    kv.tensors.back().block_stride = block_bytes;
    kv.tensors.back().page_bytes = block_bytes;
    kv.references.push_back({0, 0, 0, 0, block_bytes});
    side().register_kv(std::move(kv));
    const auto answer = on_rank<kv_registered>();
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->reason.code, ec::none) << answer->reason.text;
  }

  /// A request that is stored, and its steps.
  void serve(request_id id, step_id step) {
    add(id);
    run_step({step, {{id, row_kind::fresh, {{1}}, 0, 4, 4}}, {}, {}});
    uut->finish({id, finish_reason::stop, 4, 4});
    run_step({step + 1, {}, {}, {}});
    uut->shutdown(patience);
    const auto done = on_engine<call_done>();
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->in_flight.empty());
    uut->get_stats();
    const auto answer = on_engine<stats_answer>();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->values.stored_chunks, 1u);
    EXPECT_EQ(answer->values.order_errors, 0u);
  }

  /// A request with one chunk.
  void add(request_id id) {
    auto call = add_request{};
    call.request = id;
    call.prompt_tokens = call.known_tokens = 4;
    uut->add(call);
    uut->extend({id, 0, {prefix_hash{"a", 1}}, {}, {}});
  }

  void run_step(step_call call, compute_events events = {}) {
    const auto step = call.step;
    uut->step(std::move(call));
    side().begin_step(step);
    EXPECT_TRUE(on_engine<step_plan>());
    const auto ready = on_rank<step_ready>();
    ASSERT_TRUE(ready);
    EXPECT_EQ(ready->step, step);
    side().end_step(step, std::move(events));
  }

  options opts;
  std::vector<std::byte> gpu = std::vector<std::byte>(blocks * block_bytes);
  std::optional<runtime> uut;
  ear<engine_event> engine_ear;
  ear<rank_event> rank_ear;
};

TEST_F(Runtime, RefusesMoreEventsThanMayBePending) {
  constexpr auto most = 1'024;
  auto made = std::vector<std::uint64_t>{};
  for (auto i = 0; i < most; ++i) {
    const auto event = side().make_event();
    ASSERT_TRUE(event);
    made.push_back(event.value());
  }
  const auto refused = side().make_event();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code, ec::out_of_memory);
  side().complete_event(made.front());
  EXPECT_TRUE(side().make_event());
}

// S6: zero is what a caller has who made no event. What is stored behind it may
// not be computed yet.
TEST_F(Runtime, StoresNothingBehindAnEventThatWasNeverMade) {
  register_memory();
  add(7);
  run_step({1, {{7, row_kind::fresh, {{1}}, 0, 4, 4}}, {}, {}}, {0});
  run_step({2, {}, {}, {}});
  uut->shutdown(patience);
  ASSERT_TRUE(on_engine<call_done>());
  uut->get_stats();
  const auto answer = on_engine<stats_answer>();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->values.stored_chunks, 0u);
  side().get_stats();
  const auto rank = on_rank<rank_stats>();
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->failed_jobs, 1u);
}

// At `never` the timers of a rank that has none would be due for ever.
TEST_F(Runtime, MovesSimulatedTimeUpToTheLastMoment) {
  uut.reset();
  opts.device = device_kind::host_virtual;
  uut.emplace(runtime::start(opts).value());
  register_memory();
  const auto ticket = uut->advance(never);
  const auto failed = on_engine<call_failed>();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->ticket, ticket);
  EXPECT_EQ(failed->reason.code, ec::invalid_argument);
  EXPECT_EQ(access::parts(*uut).now, 0) << "where a restarted rank begins";
  uut->advance(never - 1);
  ASSERT_TRUE(on_engine<call_done>());
  EXPECT_EQ(access::parts(*uut).now, never - 1);
}

TEST_F(Runtime, EndsOnAnotherThreadThanItBeganOn) {
  register_memory();
  std::thread{[this] { uut.reset(); }}.join(); // Or waits for ever.
  EXPECT_FALSE(uut);
}

TEST_F(Runtime, RestartsARankWhoseWorkerDied) {
  register_memory();
  EXPECT_EQ(uut->restart_rank(0).code, ec::out_of_order) << "it lives";
  EXPECT_EQ(uut->restart_rank(1).code, ec::invalid_argument);
  side().begin_step(1); // Nobody waits for its step_ready for ever.
  kill(access::parts(side()).worker);
  const auto failed = on_rank<rank_failed>();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason.code, ec::rank_unavailable);
  ASSERT_TRUE(on_rank<kv_unregistered>());
  ASSERT_TRUE(on_engine<rank_lost>());
  side().end_step(1, {});
  ASSERT_TRUE(on_rank<rank_failed>()) << "no call vanishes";
  ASSERT_EQ(uut->restart_rank(0).code, ec::none);
  register_memory();
  const auto back = on_engine<rank_back>();
  ASSERT_TRUE(back);
  EXPECT_EQ(back->incarnation, 2u);
  serve(1, 1);
}

TEST_F(Runtime, RestartsARankWhoseDeviceDied) {
  register_memory();
  kill(access::parts(side()).device);
  auto failed = on_rank<rank_failed>();
  while (failed && failed->reason.code != ec::rank_unavailable) {
    EXPECT_EQ(failed->reason.code, ec::device_failure);
    failed = on_rank<rank_failed>();
  }
  ASSERT_TRUE(failed);
  ASSERT_TRUE(on_rank<kv_unregistered>());
  ASSERT_TRUE(on_engine<rank_lost>());
  ASSERT_EQ(uut->restart_rank(0).code, ec::none);
  register_memory();
  ASSERT_TRUE(on_engine<rank_back>());
  serve(1, 1);
}

TEST_F(Runtime, G7DoesNotStartARankAgainWhoseGpuIsLost) {
  uut.reset();
  opts.ranks = 2;
  uut.emplace(runtime::start(opts).value());
  register_memory(); // Before that a device knows no worker to end with.
  kill(access::parts(side()).worker);
  ASSERT_TRUE(on_rank<kv_unregistered>());
  const auto gpu_of_0 = std::make_shared<test::silent_gpu>();
  access::parts(*uut).change_device = [gpu_of_0](device_config& config) {
    config.engine = [gpu_of_0](const gpu::wake_function&) {
      return std::make_unique<test::silent_engine>(gpu_of_0);
    };
  };
  ASSERT_EQ(uut->restart_rank(0).code, ec::none);
  gpu_of_0->lost = {ec::device_failure, "an illegal memory access"};
  register_memory();
  caf::anon_send(access::parts(side()).device, msg::device_woke{});
  auto failed = on_rank<rank_failed>();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason.code, ec::device_failure);
  const auto why = failed->reason.text;
  EXPECT_NE(why.find("an illegal memory access"), std::string::npos) << why;
  failed = on_rank<rank_failed>();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason.code, ec::rank_unavailable);
  ASSERT_TRUE(on_rank<kv_unregistered>());
  const auto refused = uut->restart_rank(0);
  EXPECT_EQ(refused.code, ec::device_failure);
  EXPECT_EQ(refused.text, why);
  // The process lives, and so do the scheduler and the other rank.
  uut->get_stats();
  EXPECT_TRUE(on_engine<stats_answer>());
  auto& other = uut->local_rank(1);
  other.get_stats();
  auto other_ear = ear<rank_event>{};
  EXPECT_TRUE(other_ear.await<rank_stats>(other));
}

// A copy that never ends, and a driver that says nothing of it.
TEST_F(Runtime, ShutdownComesInTimeAndNamesWhatAWedgedDeviceKeeps) {
  register_memory();
  kill(access::parts(side()).worker);
  ASSERT_TRUE(on_rank<kv_unregistered>());
  const auto wedged = std::make_shared<test::silent_gpu>();
  access::parts(*uut).change_device = [wedged](device_config& config) {
    config.engine = [wedged](const gpu::wake_function&) {
      return std::make_unique<test::silent_engine>(wedged);
    };
  };
  ASSERT_EQ(uut->restart_rank(0).code, ec::none);
  register_memory();
  ASSERT_TRUE(on_engine<rank_back>());
  add(7);
  run_step({1, {{7, row_kind::fresh, {{1}}, 0, 4, 4}}, {}, {}});
  run_step({2, {}, {}, {}}); // Hands the store over.
  const auto asleep = uut->sleep(1ms);
  const auto ticket = uut->shutdown(1ms);
  for (const auto call : {asleep, ticket}) {
    const auto done = on_engine<call_done>();
    ASSERT_TRUE(done);
    EXPECT_EQ(done->ticket, call);
    EXPECT_EQ(done->in_flight, std::vector<job_id>{0});
  }
  uut.reset(); // No copy runs here, so it ends too.
}

TEST_F(Runtime, G6RefusesToBeginAStepWhileAStreamIsCaptured) {
  register_memory();
  auto captured = true;
  auto calls = compute_calls{};
  calls.record
    = [](std::uint64_t stream) { return result<std::uint64_t>{stream}; };
  calls.record_all = [&captured]() -> result<compute_events> {
    if (captured)
      return error{ec::out_of_order, "captured"};
    return compute_events{};
  };
  calls.check_not_capturing = [&captured] {
    return captured ? error{ec::out_of_order, "captured"} : error{};
  };
  access::parts(side()).compute->open(std::move(calls));
  side().begin_step(1);
  const auto failed = on_rank<rank_failed>();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason.code, ec::out_of_order);
  EXPECT_EQ(failed->reason.text, "captured");
  side().end_step(1, {}); // Names no events, and none can be recorded.
  ASSERT_TRUE(on_rank<rank_failed>());
  captured = false;
  run_step({1, {}, {}, {}}); // The calls had no effect.
  access::parts(side()).compute->close();
}

TEST_F(Runtime, AnswersEveryCallWhenTheSchedulerDied) {
  register_memory();
  kill(access::parts(*uut).scheduler);
  const auto lost = on_engine<runtime_lost>();
  ASSERT_TRUE(lost);
  EXPECT_NE(lost->reason.text, "");
  const auto ticket = uut->get_stats();
  const auto failed = on_engine<call_failed>();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->ticket, ticket);
  EXPECT_EQ(failed->reason.code, ec::shutting_down);
  ASSERT_TRUE(on_rank<kv_unregistered>()) << "the rank ends as well";
  EXPECT_EQ(uut->restart_rank(0).code, ec::shutting_down);
  // Another one serves.
  uut.reset();
  uut.emplace(runtime::start(opts).value());
  register_memory();
  serve(1, 1);
}

TEST_F(Runtime, GoesOnWhenTheCacheManagerDied) {
  register_memory();
  kill(access::parts(*uut).cache);
  ASSERT_TRUE(on_engine<cache_lost>());
  serve(1, 1);
}

} // namespace
} // namespace kvtide
