// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/engine/serving_engine.hpp"
#include "examples/serve/model/straight_answer.hpp"
#include "tests/serve/answers.hpp"
#include "tests/serve/leftovers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace serve::test {

/// Holds up the engine's thread in a callback, which nobody else should do:
/// then a test knows what the engine is doing.
class gate {
public:
  /// On the engine's thread: says that it is here, and waits.
  void pass() {
    if (std::exchange(passed_, true))
      return;
    here_.set_value();
    open_.get_future().wait_for(patience);
  }

  /// Waits until the engine's thread is held up.
  [[nodiscard]] bool holds() {
    return here_.get_future().wait_for(patience) == std::future_status::ready;
  }

  void open() {
    open_.set_value();
  }

private:
  bool passed_ = false;
  std::promise<void> here_;
  std::promise<void> open_;
};

/// An engine, its answers, and what they should be.
class engine_test : public ::testing::Test {
protected:
  void start() {
    auto made = serving_engine::start(opts);
    ASSERT_TRUE(made) << made.failure().text;
    engine = std::move(made).value();
    got.emplace(*engine);
  }

  static completion_request request(std::string prompt,
                                    std::int32_t max_tokens) {
    auto res = completion_request{};
    res.prompt = std::move(prompt);
    res.max_tokens = max_tokens;
    return res;
  }

  /// Tokens that nobody else's prompt begins with.
  static std::string text(char what, std::size_t size) {
    auto res = std::string{};
    while (res.size() < size)
      res.push_back(
        static_cast<char>(what + static_cast<char>(res.size() % 7)));
    return res;
  }

  std::string straight(const completion_request& what) {
    if (!model)
      model.emplace(opts.variant, opts.seed, opts.max_tokens);
    return straight_answer(*model, what.prompt, what.max_tokens);
  }

  /// Asks and waits.
  void expect_right_answer(const completion_request& what) {
    const auto index = got->ask(what);
    ASSERT_TRUE(index);
    ASSERT_TRUE(got->wait_for_open(0));
    EXPECT_EQ(got->at(*index).end, completion_end::length);
    EXPECT_EQ(got->at(*index).text, straight(what));
  }

  /// Asks the engine until the answer is liked. Each question waits for the
  /// cache's answer, so this is no busy loop.
  template <class Predicate>
  [[nodiscard]] bool becomes(Predicate holds) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < deadline)
      if (const auto now = engine->fresh_stats(patience); now && holds(*now))
        return true;
    return false;
  }

  /// Stops, and expects that nothing is left.
  engine_stats expect_clean_end() {
    const auto report = engine->stop(patience);
    EXPECT_TRUE(report.drained);
    EXPECT_EQ(report.jobs_in_flight, std::optional<std::uint64_t>{0});
    for (const auto& what : left_over(report.last))
      ADD_FAILURE() << "left over: " << what;
    for (const auto& one : got->all()) {
      EXPECT_EQ(one.ends, 1);
      EXPECT_FALSE(one.late_text);
    }
    return report.last;
  }

  engine_options opts;
  std::optional<transformer> model;
  /// Outlives the engine, which calls back.
  std::optional<answers> got;
  std::unique_ptr<serving_engine> engine;
};

} // namespace serve::test
