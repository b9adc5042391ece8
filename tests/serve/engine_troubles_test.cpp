// SPDX-License-Identifier: Apache-2.0

/// @file
/// What began this project was a cache whose error took the engine down. Here
/// the cache dies in every way it can, and answers stay right.

#include "tests/serve/cache_faults.hpp"
#include "tests/serve/engine_fixture.hpp"
#include "tests/serve/prompts.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace serve::test {
namespace {

class EngineTroubles : public engine_test {
protected:
  EngineTroubles() {
    opts.device_blocks = 64;
    opts.max_batch = 8;
    opts.copy_latency = std::chrono::microseconds{200};
  }

  /// Serves prompts, twice each, with trouble in between.
  /// @param trouble called on the engine's thread, now and then
  void serve_through(const std::function<void()>& trouble, int times) {
    const auto prompts = make_prompts(3, 40);
    auto texts = 0;
    for (auto round = 0; round < 2; ++round)
      for (const auto& what : prompts) {
        ASSERT_TRUE(got->wait_for_open(20));
        ASSERT_TRUE(got->ask(what, [&](completion_id, std::size_t) {
          if (++texts % 100 == 0 && times-- > 0)
            trouble();
        }));
      }
    ASSERT_TRUE(got->wait_for_open(0));
    const auto all = got->all();
    for (auto index = std::size_t{0}; index < all.size(); ++index) {
      EXPECT_EQ(all[index].end, completion_end::length);
      EXPECT_EQ(all[index].text, straight(prompts[index % prompts.size()]))
        << "request " << index;
    }
  }

  /// As `expect_clean_end`, but calls may have been refused.
  engine_stats expect_end() {
    const auto report = engine->stop(patience);
    EXPECT_TRUE(report.drained);
    auto last = report.last;
    last.refused_calls = 0;
    for (const auto& what : left_over(last))
      ADD_FAILURE() << "left over: " << what;
    return report.last;
  }
};

TEST_F(EngineTroubles, GoesOnWithAnotherCacheWhenTheRuntimeIsLost) {
  auto killer = cache_killer{opts};
  start();
  serve_through([&killer] { killer.kill_scheduler(); }, 1);
  EXPECT_EQ(killer.started(), 2u);
  const auto last = expect_end();
  EXPECT_EQ(last.cache_troubles, 1u);
  EXPECT_TRUE(last.cache_alive);
  EXPECT_GT(last.cache.stored_chunks, 0u) << "the new one works";
}

TEST_F(EngineTroubles, GoesOnWithoutACacheWhenItMayNotStartAnother) {
  opts.cache_restarts = 0;
  auto killer = cache_killer{opts};
  start();
  serve_through([&killer] { killer.kill_scheduler(); }, 1);
  EXPECT_EQ(killer.started(), 1u);
  const auto last = expect_end();
  EXPECT_FALSE(last.cache_alive);
  EXPECT_EQ(last.completed, 80u);
}

TEST_F(EngineTroubles, StartsACacheOnlySoOften) {
  opts.cache_restarts = 2;
  auto killer = cache_killer{opts};
  start();
  serve_through([&killer] { killer.kill_scheduler(); }, 5);
  EXPECT_EQ(killer.started(), 3u);
  const auto last = expect_end();
  EXPECT_EQ(last.cache_troubles, 3u);
  EXPECT_FALSE(last.cache_alive);
}

TEST_F(EngineTroubles, GoesOnWithAnotherCacheWhenItsRankIsLost) {
  auto killer = cache_killer{opts};
  start();
  serve_through([&killer] { killer.kill_worker(); }, 1);
  EXPECT_EQ(killer.started(), 2u);
  EXPECT_EQ(expect_end().cache_troubles, 1u);
}

TEST_F(EngineTroubles, GoesOnWhenTheCacheForgetsEverything) {
  auto killer = cache_killer{opts};
  start();
  serve_through([&killer] { killer.kill_cache_manager(); }, 1);
  EXPECT_EQ(killer.started(), 1u);
  const auto last = expect_end();
  EXPECT_EQ(last.cache_troubles, 1u);
  EXPECT_EQ(last.cache.lost_caches, 1u);
}

TEST_F(EngineTroubles, StopsInTimeWithAWedgedDevice) {
  const auto wedged = copy_gate{};
  add_gate(opts, wedged);
  start();
  // Blocks whose stores hang are written over: a step waits for ever.
  for (auto what = 'a'; what <= 'p'; ++what)
    ASSERT_TRUE(got->ask(request(text(what, 300), 20)));
  ASSERT_TRUE(wedged.has_kept());
  const auto report = engine->stop(std::chrono::milliseconds{50});
  EXPECT_GT(report.aborted_requests, 0u);
  ASSERT_TRUE(report.jobs_in_flight);
  EXPECT_GT(*report.jobs_in_flight, 0u) << "says what is lost";
  for (const auto& one : got->all())
    EXPECT_EQ(one.ends, 1);
}

TEST_F(EngineTroubles, GoesOnWhileACopyOfALostCacheDoesNotEnd) {
  auto loads = copy_gate{kvtide::job_kind::load};
  add_gate(opts, loads);
  auto killer = cache_killer{opts};
  start();
  const auto first = request(text('a', 400), 4);
  expect_right_answer(first);
  // The device forgets.
  expect_right_answer(request(text('k', 400), 4));
  expect_right_answer(request(text('q', 400), 4));
  const auto index = got->ask(first);
  ASSERT_TRUE(index);
  ASSERT_TRUE(loads.has_kept());
  killer.kill_worker();
  ASSERT_TRUE(got->wait_for_open(0));
  EXPECT_EQ(got->at(*index).end, completion_end::length);
  EXPECT_EQ(got->at(*index).text, straight(first));
  EXPECT_EQ(killer.started(), 2u);
  expect_right_answer(request(text('p', 60), 4));
  const auto now = engine->fresh_stats(patience);
  ASSERT_TRUE(now);
  EXPECT_GT(now->held_blocks, 0u) << "the load may still write them";
  EXPECT_TRUE(now->cache_alive);
  loads.open();
  EXPECT_TRUE(
    becomes([](const engine_stats& what) { return what.held_blocks == 0; }));
  EXPECT_EQ(expect_end().cache_troubles, 1u);
}

TEST_F(EngineTroubles, DoesNotSayThatNoCopyRunsWhenNobodyKnows) {
  const auto wedged = copy_gate{};
  add_gate(opts, wedged);
  auto killer = cache_killer{opts};
  start();
  ASSERT_TRUE(got->ask(request(text('a', 300), 20)));
  ASSERT_TRUE(wedged.has_kept());
  // It goes when the engine ends what there is.
  auto forever = completion_callbacks{};
  forever.on_end = [&killer](completion_end) { killer.kill_scheduler(); };
  ASSERT_TRUE(engine->submit(request("b", 900), std::move(forever)));
  const auto report = engine->stop(std::chrono::milliseconds{0});
  EXPECT_EQ(report.jobs_in_flight, std::nullopt);
}

} // namespace
} // namespace serve::test
