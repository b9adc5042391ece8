// SPDX-License-Identifier: Apache-2.0

#include "tests/serve/engine_fixture.hpp"

#include <atomic>
#include <vector>

namespace serve::test {
namespace {

using kvtide::ec;

using ServingEngine = engine_test;

TEST_F(ServingEngine, AnswersAsTheModelDoes) {
  start();
  expect_right_answer(request("Hello", 20));
  expect_right_answer(request(text('a', 700), 1));
  const auto last = expect_clean_end();
  EXPECT_EQ(last.completed, 2u);
  EXPECT_EQ(last.output_tokens, 21u);
}

TEST_F(ServingEngine, ComputesNoPromptTwice) {
  start();
  expect_right_answer(request(text('a', 320), 4));
  expect_right_answer(request(text('a', 320), 4));
  const auto last = expect_clean_end();
  EXPECT_EQ(last.device_hit_tokens, 304u);
}

TEST_F(ServingEngine, SharesNothingBetweenSalts) {
  start();
  auto what = request(text('a', 320), 4);
  expect_right_answer(what);
  what.cache_salt = "another tenant";
  expect_right_answer(what);
  const auto last = expect_clean_end();
  EXPECT_EQ(last.device_hit_tokens + last.host_hit_tokens, 0u);
}

TEST_F(ServingEngine, RefusesWhatItCannotServe) {
  opts.max_tokens = 100;
  opts.device_blocks = 5;
  start();
  const auto refused = [this](completion_request what) {
    const auto res = engine->submit(std::move(what), {});
    return res ? ec::none : res.failure().code;
  };
  EXPECT_EQ(refused(request("", 4)), ec::invalid_argument);
  EXPECT_EQ(refused(request("a", 0)), ec::invalid_argument);
  EXPECT_EQ(refused(request("a", -1)), ec::invalid_argument);
  EXPECT_EQ(refused(request("a", 2'147'483'647)), ec::invalid_argument);
  EXPECT_EQ(refused(request(text('a', 101), 1)), ec::invalid_argument);
  EXPECT_EQ(refused(request(text('a', 60), 21)), ec::invalid_argument)
    << "does not fit into the device";
  EXPECT_EQ(engine->stats().refused, 6u);
  expect_right_answer(request(text('a', 60), 20));
  expect_clean_end();
}

TEST_F(ServingEngine, RefusesOptionsThatMakeNoSense) {
  opts.max_batch = 0;
  auto made = serving_engine::start(opts);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().code, ec::invalid_options);
  opts.max_batch = 1;
  opts.job_deadline = std::chrono::milliseconds{-1}; // The cache's to refuse.
  made = serving_engine::start(opts);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().code, ec::invalid_options);
}

TEST_F(ServingEngine, RefusesMoreWhenItsQueueIsFull) {
  opts.max_batch = 1;
  opts.queue_limit = 2;
  start();
  auto held = gate{};
  ASSERT_TRUE(got->ask(request("a", 8),
                       [&held](completion_id, std::size_t) { held.pass(); }));
  ASSERT_TRUE(held.holds());
  EXPECT_TRUE(got->ask(request("b", 8)));
  EXPECT_TRUE(got->ask(request("c", 8)));
  const auto refused = engine->submit(request("d", 8), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code, ec::out_of_memory);
  held.open();
  ASSERT_TRUE(got->wait_for_open(0));
  expect_right_answer(request("d", 8));
  expect_clean_end();
}

TEST_F(ServingEngine, TakesRequestsInCallbacks) {
  start();
  auto next = std::promise<std::string>{};
  auto said = std::string{};
  auto second = completion_callbacks{};
  second.on_text = [&said](std::string_view bytes) { said += bytes; };
  second.on_end = [&](completion_end) { next.set_value(said); };
  auto first = completion_callbacks{};
  first.on_end = [&](completion_end) {
    EXPECT_FALSE(engine->fresh_stats(patience)) << "would wait for itself";
    EXPECT_TRUE(engine->submit(request("second", 6), second));
  };
  ASSERT_TRUE(engine->submit(request("first", 2), first));
  auto answer = next.get_future();
  ASSERT_EQ(answer.wait_for(patience), std::future_status::ready);
  EXPECT_EQ(answer.get(), straight(request("second", 6)));
  expect_clean_end();
}

TEST_F(ServingEngine, ServesWhoIsThereWhenItStops) {
  opts.max_batch = 3;
  start();
  auto held = gate{};
  for (auto i = 0; i < 20; ++i)
    ASSERT_TRUE(got->ask(request(std::string(1, static_cast<char>(i)), 8),
                         [&held](completion_id, std::size_t) { held.pass(); }));
  ASSERT_TRUE(held.holds());
  held.open();
  const auto last = expect_clean_end();
  EXPECT_EQ(last.completed, 20u);
  const auto late = engine->submit(request("late", 1), {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.failure().code, ec::shutting_down);
  EXPECT_TRUE(engine->stop(patience).drained) << "the same report again";
}

TEST_F(ServingEngine, AbortsWhoIsThereWhenItMustStop) {
  opts.max_batch = 3;
  start();
  auto held = gate{};
  for (auto i = 0; i < 20; ++i)
    ASSERT_TRUE(got->ask(request("a", 2'000),
                         [&held](completion_id, std::size_t) { held.pass(); }));
  ASSERT_TRUE(held.holds());
  held.open();
  const auto report = engine->stop(std::chrono::milliseconds{0});
  EXPECT_FALSE(report.drained);
  EXPECT_EQ(report.aborted_requests, 20u);
  for (const auto& what : left_over(report.last))
    ADD_FAILURE() << "left over: " << what;
  for (const auto& one : got->all()) {
    EXPECT_EQ(one.end, completion_end::aborted);
    EXPECT_EQ(one.ends, 1);
  }
}

TEST_F(ServingEngine, SleepsWhenThereIsNothingToDo) {
  start();
  expect_right_answer(request("a", 4));
  ASSERT_TRUE(becomes([](const engine_stats& now) {
    return now.cache.tracked_requests == 0 && now.cache.jobs_in_flight == 0;
  }));
  const auto before = engine->fresh_stats(patience);
  const auto after = engine->fresh_stats(patience);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->steps, after->steps) << "no steps without a reason";
  // A question wakes it, and each of the cache's two answers.
  EXPECT_LE(after->turns - before->turns, 4u) << "no turns without a reason";
}

} // namespace
} // namespace serve::test
