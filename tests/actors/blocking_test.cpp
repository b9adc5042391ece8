// SPDX-License-Identifier: Apache-2.0

/// @file
/// Calls that wait for their answers, against a real runtime.

#include "kvtide/blocking.hpp"

#include "tests/support/runtime_access.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

using ::testing::HasSubstr;

using namespace std::chrono_literals;

namespace kvtide {
namespace {

using access = runtime_access;

/// Only a broken runtime is waited for so long.
constexpr auto patience = 20'000ms;

constexpr std::size_t block_bytes = 64;
constexpr std::uint32_t blocks = 8;
constexpr request_id P = 'P';
constexpr request_id R = 'R';

class Blocking : public ::testing::Test {
protected:
  static options make_options() {
    auto out = options{};
    out.groups.front().tokens_per_block = 4;
    out.blocks_per_chunk = 1;
    out.tokens_per_hash = 4;
    out.host_bytes = 16 * block_bytes;
    return out;
  }

  /// @param layer changes what the bytes mean
  kv_memory memory(std::vector<std::byte>& bytes, std::uint32_t layer = 0) {
    auto kv = kv_memory{};
    kv.tensors.push_back({bytes.data(), bytes.size(), memory_kind::host, blocks,
                          block_bytes, block_bytes});
    kv.references.push_back({0, layer, 0, 0, block_bytes});
    return kv;
  }

  void SetUp() override {
    const auto known = side.register_kv(memory(gpu), patience);
    ASSERT_TRUE(known) << known.failure().text;
  }

  void add(request_id id, token_count tokens) {
    auto call = add_request{};
    call.request = id;
    call.prompt_tokens = call.known_tokens = tokens;
    rt.add(call);
    rt.extend({id, 0, {prefix_hash{"a", 1}}, {}, {}});
  }

  void step(step_id number, std::vector<step_row> rows = {}) {
    const auto plan = engine.step({number, std::move(rows), {}, {}}, patience);
    ASSERT_TRUE(plan) << plan.failure().text;
    const auto ready = side.begin_step(number, {}, patience);
    ASSERT_TRUE(ready) << ready.failure().text;
    rt.local_rank(0).end_step(number, {});
  }

  /// One chunk of `R`, full of `value`, is stored from block 1.
  void store(std::byte value) {
    std::fill_n(gpu.begin() + block_bytes, block_bytes, value);
    add(R, 4);
    step(1, {{R, row_kind::fresh, {{1}}, 0, 4, 4}});
    ASSERT_TRUE(engine.finish({R, finish_reason::stop, 4, 4}, patience));
  }

  /// A load of that chunk into block 2 waits for a step.
  void look_up_what_is_stored() {
    store(std::byte{7});
    ASSERT_TRUE(engine.sleep(patience, patience)); // The store ends meanwhile.
    ASSERT_TRUE(engine.wake(patience));
    add(P, 5);
    const auto hit = engine.lookup({{P, 0, 5}}, patience);
    ASSERT_TRUE(hit);
    ASSERT_EQ(hit.value().hits.at(0).tokens, 4);
    rt.allocate({P, 4, {{2, 3}}, {{0, 0}}});
  }

  std::vector<std::byte> gpu = std::vector<std::byte>(blocks * block_bytes);
  /// After a sleep.
  std::vector<std::byte> other = std::vector<std::byte>(blocks * block_bytes);
  runtime rt = runtime::start(make_options()).value();
  blocking_runtime engine{rt};
  blocking_rank side{rt.local_rank(0)};
};

TEST_F(Blocking, ReturnsTheAnswerOfEachCall) {
  add(R, 4);
  const auto hit = engine.lookup({{R, 0, 4}}, patience);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit.value().hits.at(0).request, R);
  const auto why = engine.explain(R, patience);
  ASSERT_TRUE(why);
  EXPECT_EQ(why.value().reason, miss_reason::absent);
  step(1);
  EXPECT_TRUE(engine.finish({R, finish_reason::abort, 4, 0}, patience));
  EXPECT_TRUE(engine.reset(patience));
  EXPECT_TRUE(engine.take_events(patience));
  const auto counted = engine.get_stats(patience);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted.value().values.lookups, 1u);
  EXPECT_TRUE(side.get_stats(patience));
  EXPECT_TRUE(engine.sleep(patience, patience));
  EXPECT_TRUE(side.unregister_kv(patience));
  EXPECT_TRUE(side.register_kv(memory(gpu), patience));
  EXPECT_TRUE(engine.wake(patience));
  EXPECT_EQ(engine.advance(1, patience).failure().code, ec::unsupported);
  EXPECT_TRUE(engine.shutdown(patience, patience));
}

TEST_F(Blocking, SetsEverythingElseAsideInItsOrder) {
  const auto first = rt.lookup({{R, 0, 4}}); // Fails: R is not there.
  const auto second = rt.get_stats();
  const auto third = rt.take_events();
  EXPECT_TRUE(engine.reset(patience));
  EXPECT_TRUE(engine.wait(0ms)) << "although the descriptor says nothing";
  const auto events = engine.poll();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(std::get<call_failed>(events[0]).ticket, first);
  EXPECT_EQ(std::get<stats_answer>(events[1]).ticket, second);
  EXPECT_EQ(std::get<events_answer>(events[2]).ticket, third);
  EXPECT_TRUE(engine.poll().empty());
}

TEST_F(Blocking, ReturnsTheErrorOfACallThatFails) {
  const auto refused = engine.explain(R, patience);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code, ec::unknown_request);
  EXPECT_TRUE(engine.poll().empty());
  const auto twice = side.register_kv(memory(gpu), patience);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.failure().code, ec::out_of_order);
}

TEST_F(Blocking, ATimeoutLosesNothing) {
  add(R, 4);
  rt.step({1, {{R, row_kind::fresh, {{1}}, 0, 4, 4}}, {}, {}});
  // No rank ends the step, so its store is never handed over.
  const auto late = engine.shutdown(patience, 1ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.failure().code, ec::timeout);
  EXPECT_THAT(late.failure().text, HasSubstr("await it again"));
  ASSERT_TRUE(side.begin_step(1, {}, patience));
  rt.local_rank(0).end_step(1, {});
  const auto ticket = engine.reset(patience).value().ticket - 1;
  EXPECT_TRUE(engine.await<call_done>(ticket, patience));
  auto plans = 0;
  for (const auto& event : engine.poll())
    plans += std::holds_alternative<step_plan>(event);
  EXPECT_EQ(plans, 1) << "nobody has asked for it yet";
  EXPECT_FALSE(engine.await<call_done>(ticket, -1ms)) << "taken already";
}

TEST_F(Blocking, WaitsForTheEndOfALoad) {
  look_up_what_is_stored();
  step(2);
  const auto loaded = engine.await_load(P, patience);
  ASSERT_TRUE(loaded) << loaded.failure().text;
  EXPECT_EQ(loaded.value().request, P);
  EXPECT_EQ(gpu.at(2 * block_bytes), std::byte{7});
  EXPECT_EQ(engine.await_load(P, 0ms).failure().code, ec::timeout)
    << "it ends once";
}

/// What is to be computed again is in the notice.
TEST_F(Blocking, ALoadThatFailsIsSaidAndStaysToBeRead) {
  look_up_what_is_stored();
  ASSERT_TRUE(engine.sleep(patience, patience)); // No step has delivered it.
  EXPECT_EQ(engine.await_load(P, patience).failure().code, ec::device_failure);
  const auto events = engine.poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<load_failed>(events.front()).request, P);
}

TEST_F(Blocking, ARankHearsOfAStepThatWasReadyBefore) {
  rt.step({1, {}, {}, {}});
  ASSERT_TRUE(side.wait(patience));
  const auto ready = side.begin_step(1, {}, patience);
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready.value().step, 1u);
  EXPECT_TRUE(side.poll().empty());
  EXPECT_EQ(side.begin_step(2, {}, 0ms).failure().code, ec::timeout);
}

TEST_F(Blocking, ARankReturnsWhatRefusesItsCall) {
  EXPECT_TRUE(side.unregister_kv(patience));
  const auto twice = side.unregister_kv(patience);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.failure().code, ec::out_of_order);
}

TEST_F(Blocking, ALostRuntimeAnswersNobodyButSaysSo) {
  caf::anon_send_exit(access::parts(rt).scheduler, caf::exit_reason::kill);
  while (!engine.wait(0ms))
    std::this_thread::yield();
  for (auto i = 0; i < 2; ++i) {
    const auto answer = engine.await<stats_answer>(77, patience);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.failure().code, ec::shutting_down);
    if (i == 0) {
      EXPECT_FALSE(engine.poll().empty()) << "the notice itself is kept";
    }
  }
}

// G8
TEST_F(Blocking, WhatIsStoredSurvivesAPauseWithOtherMemory) {
  store(std::byte{7});
  const auto asleep = engine.sleep(patience, patience);
  ASSERT_TRUE(asleep);
  EXPECT_TRUE(asleep.value().in_flight.empty());
  ASSERT_TRUE(side.unregister_kv(patience));
  std::fill(gpu.begin(), gpu.end(), std::byte{0});
  ASSERT_TRUE(side.register_kv(memory(other), patience));
  ASSERT_TRUE(engine.wake(patience));
  add(P, 5);
  ASSERT_EQ(engine.lookup({{P, 0, 5}}, patience).value().hits.at(0).tokens, 4);
  rt.allocate({P, 4, {{3, 4}}, {{0, 0}}});
  step(2);
  auto loaded = false;
  while (!loaded && engine.wait(patience))
    for (const auto& event : engine.poll())
      loaded = loaded || std::holds_alternative<load_done>(event);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(other[3 * block_bytes], std::byte{7});
  EXPECT_EQ(gpu[3 * block_bytes], std::byte{0});
}

// G8
TEST_F(Blocking, OtherReferencesAreRefusedAfterAPause) {
  store(std::byte{7});
  ASSERT_TRUE(engine.sleep(patience, patience));
  ASSERT_TRUE(side.unregister_kv(patience));
  const auto refused = side.register_kv(memory(other, 1), patience);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code, ec::invalid_argument);
  EXPECT_THAT(refused.failure().text, HasSubstr("chunks of another form"));
  const auto early = engine.wake(patience);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.failure().code, ec::rank_unavailable);
  EXPECT_THAT(early.failure().text, HasSubstr("rank 0"));
  ASSERT_TRUE(side.register_kv(memory(other), patience));
  EXPECT_TRUE(engine.wake(patience));
}

// -- one thread at a time -----------------------------------------------------

TEST_F(Blocking, ASecondThreadInACallIsTurnedAway) {
  {
    const auto inside = access::parts(rt).caller->enter();
    EXPECT_EQ(rt.reset(), 0u);
    EXPECT_EQ(rt.advance(1), 0u);
    EXPECT_TRUE(rt.poll().empty());
    EXPECT_EQ(rt.restart_rank(0).code, ec::out_of_order);
    EXPECT_TRUE(rt.wait(0ms)) << "anybody may wait";
  }
  const auto events = rt.poll();
  ASSERT_EQ(events.size(), 3u) << "one for each but restart_rank";
  for (const auto& event : events) {
    const auto& failed = std::get<call_failed>(event);
    EXPECT_EQ(failed.ticket, 0u);
    EXPECT_EQ(failed.reason.code, ec::out_of_order);
    EXPECT_THAT(failed.reason.text, HasSubstr("two threads"));
  }
  const auto counted = engine.get_stats(patience).value().values;
  EXPECT_EQ(counted.resets, 0u) << "it had no effect";
  EXPECT_EQ(counted.order_errors, 4u);
  EXPECT_EQ(counted.order_errors_by_rule[0], 4u);
}

TEST_F(Blocking, ASecondThreadInACallOfARankIsTurnedAway) {
  auto& gpu_side = rt.local_rank(0);
  {
    const auto inside = access::parts(gpu_side).caller->enter();
    gpu_side.unregister_kv();
    gpu_side.register_kv({});
    gpu_side.begin_step(1);
    gpu_side.end_step(1, {});
    gpu_side.get_stats();
    EXPECT_TRUE(gpu_side.poll().empty());
    EXPECT_EQ(gpu_side.make_event().failure().code, ec::out_of_order);
    EXPECT_EQ(gpu_side.record_event(1).failure().code, ec::out_of_order);
  }
  {
    const auto inside = access::parts(gpu_side).caller->enter();
    EXPECT_THAT(rt.restart_rank(0).text, HasSubstr("two threads"))
      << "it changes what the other thread reads";
  }
  const auto events = gpu_side.poll();
  ASSERT_EQ(events.size(), 6u);
  for (const auto& event : events)
    EXPECT_EQ(std::get<rank_failed>(event).reason.code, ec::out_of_order);
  EXPECT_EQ(side.get_stats(patience).value().order_errors, 9u);
  EXPECT_TRUE(side.unregister_kv(patience)) << "it is registered still";
}

TEST_F(Blocking, AWaitBesideAThreadInACallIsNoCall) {
  {
    const auto inside = access::parts(rt).caller->enter();
    EXPECT_EQ(engine.await_load(R, 0ms).failure().code, ec::timeout);
  }
  EXPECT_TRUE(engine.poll().empty()) << "nobody was turned away";
  const auto counted = engine.get_stats(patience).value().values;
  EXPECT_EQ(counted.order_errors, 0u);
}

TEST_F(Blocking, TwoThreadsAtOnceDoNoHarm) {
  constexpr auto calls = 500u;
  const auto ask = [&](std::uint64_t& refused) {
    for (auto i = 0u; i < calls; ++i)
      refused += rt.reset() == 0;
  };
  auto here = std::uint64_t{0};
  auto there = std::uint64_t{0};
  auto second = std::thread{[&] { ask(there); }};
  ask(here);
  second.join();
  const auto counted = engine.get_stats(patience).value().values;
  EXPECT_EQ(counted.resets, 2 * calls - here - there);
  EXPECT_EQ(counted.order_errors, here + there);
  auto done = 0u;
  auto failed = 0u;
  for (const auto& event : engine.poll()) {
    done += std::holds_alternative<call_done>(event);
    failed += std::holds_alternative<call_failed>(event);
  }
  EXPECT_EQ(done + failed, 2 * calls) << "each call has its answer";
}

} // namespace
} // namespace kvtide
