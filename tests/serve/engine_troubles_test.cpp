// SPDX-License-Identifier: Apache-2.0

/// @file
/// What began this project was a cache whose error took the engine down. Here
/// the cache dies in every way it can, and answers stay right.

#include "tests/serve/cache_faults.hpp"
#include "tests/serve/engine_fixture.hpp"
#include "tests/serve/prompts.hpp"

#include <functional>
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
  using kvtide::gpu::copy_fault;
  using kvtide::gpu::fault_kind;
  auto wedged = copy_trouble{};
  wedged.fault = [](kvtide::job_id, kvtide::job_kind) {
    return copy_fault{fault_kind::hang, 0, 0};
  };
  add_trouble(opts, wedged);
  start();
  // Blocks whose stores hang are written over: a step waits for ever.
  for (auto what = 'a'; what <= 'p'; ++what)
    ASSERT_TRUE(got->ask(request(text(what, 300), 20)));
  ASSERT_TRUE(becomes(
    [](const engine_stats& now) { return now.cache.jobs_in_flight > 0; }));
  const auto report = engine->stop(std::chrono::milliseconds{50});
  EXPECT_GT(report.aborted_requests, 0u);
  EXPECT_GT(report.jobs_in_flight, 0u) << "says what is lost";
  for (const auto& one : got->all())
    EXPECT_EQ(one.ends, 1);
}

} // namespace
} // namespace serve::test
