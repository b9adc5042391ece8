// SPDX-License-Identifier: Apache-2.0

/// @file
/// A client may go at any moment. Whatever its request is doing then, nothing
/// is left of it, and nobody else notices.

#include "tests/serve/cache_faults.hpp"
#include "tests/serve/engine_fixture.hpp"

#include <future>
#include <string_view>
#include <utility>

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
  // The engine hears what was posted when its turn begins, clients before the
  // cache, and asks when it ends. So: a turn that hears text, and posts the
  // request and an abort of the other; one that hears both, posts the abort of
  // the request, and asks; one that hears that abort before any answer.
  auto other = std::promise<completion_id>{};
  auto asking = completion_id{0};
  auto ended = std::promise<completion_end>{};
  auto what = completion_callbacks{};
  what.on_end = [&ended](completion_end why) { ended.set_value(why); };
  auto first = completion_callbacks{};
  first.on_text = [&, id = other.get_future().share()](std::string_view) {
    if (asking != 0)
      return;
    const auto taken = engine->submit(request("asking", 4), what);
    ASSERT_TRUE(taken);
    asking = taken.value();
    engine->abort(id.get());
  };
  first.on_end = [&](completion_end) { engine->abort(asking); };
  const auto taken = engine->submit(request("other", 2'000), std::move(first));
  ASSERT_TRUE(taken);
  other.set_value(taken.value());
  auto why = ended.get_future();
  ASSERT_EQ(why.wait_for(patience), std::future_status::ready);
  EXPECT_EQ(why.get(), completion_end::aborted);
  EXPECT_EQ(expect_clean_end().aborted_asking, 1u);
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
  opts.device_blocks = 32;
  auto loads = copy_gate{kvtide::job_kind::load};
  add_gate(opts, loads);
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
  loads.open();
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
