// SPDX-License-Identifier: Apache-2.0

/// @file
/// A client may go at any moment. Whatever its request is doing then, nothing
/// is left of it, and nobody else notices.

#include "tests/serve/cache_faults.hpp"
#include "tests/serve/engine_fixture.hpp"

namespace serve::test {
namespace {

using EngineAborts = engine_test;

TEST_F(EngineAborts, WhileItIsQueued) {
  opts.max_batch = 1;
  start();
  auto held = gate{};
  const auto first = request("first", 12);
  ASSERT_TRUE(
    got->ask(first, [&held](completion_id, std::size_t) { held.pass(); }));
  ASSERT_TRUE(held.holds());
  const auto index = got->ask(request("queued", 8));
  ASSERT_TRUE(index);
  engine->abort(got->at(*index).id);
  held.open();
  ASSERT_TRUE(got->wait_for_open(0));
  EXPECT_EQ(got->at(*index).end, completion_end::aborted);
  EXPECT_EQ(got->at(*index).text, "");
  EXPECT_EQ(got->at(0).text, straight(first));
  EXPECT_EQ(expect_clean_end().aborted_queued, 1u);
}

TEST_F(EngineAborts, WhileItsLookupIsUnderWay) {
  start();
  // An abort behind its request is heard in the same turn, or in the next one,
  // before or after the answer to the lookup. The one between comes soon.
  for (auto tries = 0; tries < 20'000 && engine->stats().aborted_asking == 0;
       ++tries) {
    const auto index = got->ask(request("a", 4));
    ASSERT_TRUE(index);
    engine->abort(got->at(*index).id);
    ASSERT_TRUE(got->wait_for_open(0));
  }
  EXPECT_GT(expect_clean_end().aborted_asking, 0u);
}

TEST_F(EngineAborts, InTheMiddleOfAStep) {
  start();
  const auto index = got->ask(
    request("running", 2'000), [this](completion_id id, std::size_t bytes) {
      if (bytes == 3)
        engine->abort(id); // The next step is in flight.
    });
  ASSERT_TRUE(index);
  ASSERT_TRUE(got->wait_for_open(0));
  EXPECT_EQ(got->at(*index).end, completion_end::aborted);
  // Two steps were in flight at most.
  const auto said = got->at(*index).text;
  EXPECT_LE(said.size(), 5u);
  EXPECT_EQ(said, straight(request("running", 5)).substr(0, said.size()));
  EXPECT_EQ(expect_clean_end().aborted_running, 1u);
}

TEST_F(EngineAborts, WhileItLoads) {
  using kvtide::gpu::copy_fault;
  using kvtide::gpu::fault_kind;
  opts.device_blocks = 32;
  auto slow_loads = copy_trouble{};
  slow_loads.fault = [](kvtide::job_id, kvtide::job_kind kind) {
    constexpr auto delay = std::chrono::nanoseconds{std::chrono::seconds{3}};
    return kind == kvtide::job_kind::load
           ? copy_fault{fault_kind::delay, 0, delay.count()}
           : copy_fault{};
  };
  add_trouble(opts, slow_loads);
  start();
  const auto first = request(text('a', 400), 4);
  expect_right_answer(first);
  expect_right_answer(request(text('k', 400), 4)); // The device forgets.
  ASSERT_TRUE(becomes([](const engine_stats& now) {
    return now.cache.jobs_in_flight == 0 && now.cache.tracked_requests == 0;
  }));
  const auto index = got->ask(first);
  ASSERT_TRUE(index);
  ASSERT_TRUE(
    becomes([](const engine_stats& now) { return now.loading == 1; }));
  engine->abort(got->at(*index).id);
  ASSERT_TRUE(got->wait_for_open(0));
  EXPECT_EQ(got->at(*index).end, completion_end::aborted);
  const auto now = engine->fresh_stats(patience);
  ASSERT_TRUE(now);
  EXPECT_GT(now->held_blocks, 0u) << "the load may still write them";
  EXPECT_EQ(now->aborted_loading, 1u);
  expect_right_answer(request(text('p', 60), 4)); // Does not touch them.
  expect_clean_end();
}

TEST_F(EngineAborts, WhileItIsPreempted) {
  opts.tokens_per_block = 4;
  opts.device_blocks = 60;
  start();
  auto other = completion_id{0};
  auto held = gate{};
  const auto first = request(text('a', 100), 100);
  ASSERT_TRUE(got->ask(first, [&](completion_id, std::size_t bytes) {
    held.pass();
    // Both have 100 tokens and grow alike; there is no room for 2 * 140.
    if (bytes == 80)
      engine->abort(other);
  }));
  ASSERT_TRUE(held.holds());
  const auto index = got->ask(request(text('k', 100), 100));
  ASSERT_TRUE(index);
  other = got->at(*index).id;
  held.open();
  ASSERT_TRUE(got->wait_for_open(0));
  EXPECT_EQ(got->at(*index).end, completion_end::aborted);
  EXPECT_EQ(got->at(0).text, straight(first));
  const auto last = expect_clean_end();
  EXPECT_GT(last.preemptions, 0u);
  EXPECT_EQ(last.aborted_preempted, 1u);
}

TEST_F(EngineAborts, WithoutEffectOnWhoHasEnded) {
  start();
  expect_right_answer(request("a", 4));
  engine->abort(got->at(0).id);
  engine->abort(got->at(0).id + 100);
  engine->abort(0);
  expect_right_answer(request("b", 4));
  EXPECT_EQ(expect_clean_end().aborted, 0u);
}

} // namespace
} // namespace serve::test
