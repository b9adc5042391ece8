// SPDX-License-Identifier: Apache-2.0

#include "gpu/named_pool_engine.hpp"
#include "tests/gpu/named_pool_home.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Copies nothing; the test says how jobs and fences end.
class told_engine : public copy_engine {
public:
  struct script {
    std::vector<completion> done;
    std::vector<step_id> fences;
    std::optional<fence> next_fence;
    std::size_t in_flight = 0;
    std::vector<job_id> submitted;
    error lost;
  };

  explicit told_engine(script& told) : told_(told) {
    // nop
  }

  ec submit(copy_job job) override {
    EXPECT_THAT(job.contents, IsEmpty());
    told_.submitted.push_back(job.id);
    ++told_.in_flight;
    return ec::none;
  }

  std::optional<fence> make_fence(step_id,
                                  const std::vector<job_id>&) override {
    return told_.next_fence;
  }

  void poll(std::vector<completion>& done,
            std::vector<step_id>& steps) override {
    for (auto& x : std::exchange(told_.done, {})) {
      done.push_back(std::move(x));
      --told_.in_flight;
    }
    for (const auto step : std::exchange(told_.fences, {}))
      steps.push_back(step);
  }

  std::size_t in_flight() const override {
    return told_.in_flight;
  }

  error lost() const override {
    return told_.lost;
  }

private:
  script& told_;
};

/// Digests wait while it is shut. One for all tests, as digests are functions.
struct digest_gate {
  void set(bool open) {
    const std::lock_guard lock{mutex};
    is_open = open;
    changed.notify_all();
  }

  void pass() {
    std::unique_lock lock{mutex};
    changed.wait(lock, [this] { return is_open; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = true;
};

digest_gate gate;

content_digest gated_digest(const void* data, std::size_t size) {
  if (size == named_pool_home::slot_bytes)
    gate.pass();
  return toy_digest(data, size);
}

class NamedPoolEngine : public ::testing::Test {
protected:
  NamedPoolEngine() {
    home.config.named->digest = gated_digest;
    EXPECT_EQ(home.open().code, ec::none);
  }

  ~NamedPoolEngine() override {
    gate.set(true);
    engine.reset();
  }

  void make(std::uint32_t threads) {
    named_engine_config config;
    config.pool = home.pool->named();
    config.threads = threads;
    config.wake = [this] {
      const std::lock_guard lock{mutex};
      ++woken;
      changed.notify_all();
    };
    engine = make_named_pool_engine(std::make_unique<told_engine>(told),
                                    std::move(config))
               .value();
  }

  void submit(job_id id, const std::vector<slot_content>& contents,
              job_kind kind = job_kind::store) {
    copy_job what;
    what.id = id;
    what.kind = kind;
    what.contents = contents;
    EXPECT_EQ(engine->submit(std::move(what)), ec::none);
  }

  void copied(job_id id, copy_result result = copy_result::done) {
    completion x;
    x.job = id;
    x.result = result;
    told.done.push_back(x);
  }

  /// Jobs, then steps as negative numbers.
  std::vector<int> poll() {
    std::vector<completion> done;
    std::vector<step_id> steps;
    engine->poll(done, steps);
    std::vector<int> out;
    for (const auto& x : done)
      out.push_back(static_cast<int>(x.job));
    for (const auto x : steps)
      out.push_back(-static_cast<int>(x));
    return out;
  }

  std::vector<int> poll_until(std::size_t count) {
    std::vector<int> out;
    for (;;) {
      for (const auto x : poll())
        out.push_back(x);
      if (out.size() >= count)
        return out;
      std::unique_lock lock{mutex};
      changed.wait(lock, [this] { return woken > heard; });
      heard = woken;
    }
  }

  [[nodiscard]] bool is_valid(slot_id slot) const {
    return home.table().content(slot).has_value();
  }

  named_pool_home home;
  told_engine::script told;
  std::unique_ptr<copy_engine> engine;
  std::mutex mutex;
  std::condition_variable changed;
  int woken = 0;
  int heard = 0;
};

TEST_F(NamedPoolEngine, AStoreIsReportedOnlyAfterItsSlotsAreValid) {
  make(1);
  home.store(1, 11);
  submit(1, {home.content(1, 10), home.content(2, 20)});
  EXPECT_FALSE(is_valid(1)) << "before the first byte";
  home.fill(1, 10);
  home.fill(2, 20);
  gate.set(false);
  copied(1);
  EXPECT_THAT(poll(), IsEmpty());
  EXPECT_EQ(engine->in_flight(), 1u);
  EXPECT_FALSE(is_valid(1));
  gate.set(true);
  EXPECT_THAT(poll_until(1), ElementsAre(1));
  EXPECT_EQ(engine->in_flight(), 0u);
  EXPECT_TRUE(is_valid(1));
  EXPECT_TRUE(is_valid(2));
  engine.reset();
  ASSERT_EQ(home.open().code, ec::none);
  EXPECT_THAT(home.kept(), ElementsAre(1, 2));
}

TEST_F(NamedPoolEngine, WithoutThreadsAStoreIsValidInThePollThatReportsIt) {
  make(0);
  submit(1, {home.content(1, 10)});
  EXPECT_THAT(poll(), IsEmpty());
  copied(1);
  told.next_fence = fence{}; // Over for the copies.
  EXPECT_TRUE(engine->make_fence(5, {1}));
  EXPECT_THAT(poll(), ElementsAre(1));
  EXPECT_TRUE(is_valid(1));
}

TEST_F(NamedPoolEngine, AStoreThatFailsLeavesItsSlotsWithoutContent) {
  make(1);
  home.store(1, 11);
  home.store(2, 22);
  submit(1, {home.content(1, 10)});
  copied(1, copy_result::failed);
  EXPECT_THAT(poll(), ElementsAre(1));
  engine.reset();
  ASSERT_EQ(home.open().code, ec::none);
  EXPECT_THAT(home.kept(), ElementsAre(2));
}

TEST_F(NamedPoolEngine, LoadsAndJobsWithoutContentPass) {
  make(1);
  home.store(1, 11);
  submit(1, {}, job_kind::load);
  submit(2, {});
  copied(2);
  copied(1);
  EXPECT_THAT(poll(), ElementsAre(2, 1));
  EXPECT_TRUE(is_valid(1));
}

TEST_F(NamedPoolEngine, ASlotThatALaterStoreGotIsNotValidBeforeThatEnds) {
  make(1);
  submit(1, {home.content(1, 10)});
  gate.set(false);
  copied(1);
  EXPECT_THAT(poll(), IsEmpty());
  submit(2, {home.content(1, 20)}); // After a reset, under `reference`.
  gate.set(true);
  EXPECT_THAT(poll_until(1), ElementsAre(1));
  EXPECT_FALSE(is_valid(1));
  home.fill(1, 20);
  copied(2);
  EXPECT_THAT(poll_until(1), ElementsAre(2));
  ASSERT_TRUE(is_valid(1));
  EXPECT_EQ(home.table().content(1)->key.low, 20u);
}

// -- fences -------------------------------------------------------------------

/// S5: what is over for a fence is over for whoever hears of it.
TEST_F(NamedPoolEngine, AFenceWithoutEventComesAfterTheStoreThatItWaitsFor) {
  make(1);
  submit(1, {home.content(1, 10)});
  EXPECT_FALSE(engine->make_fence(5, {1}));
  gate.set(false);
  copied(1);
  told.fences = {5};
  EXPECT_THAT(poll(), IsEmpty());
  gate.set(true);
  EXPECT_THAT(poll_until(2), ElementsAre(1, -5));
}

TEST_F(NamedPoolEngine, AFenceForCopiesThatAreOverWaitsForTheDigest) {
  make(1);
  submit(1, {home.content(1, 10)});
  gate.set(false);
  copied(1);
  EXPECT_THAT(poll(), IsEmpty());
  told.next_fence = fence{};
  EXPECT_FALSE(engine->make_fence(5, {1}));
  EXPECT_TRUE(engine->make_fence(6, {7}).has_value()) << "nothing to wait for";
  EXPECT_THAT(poll(), IsEmpty());
  gate.set(true);
  EXPECT_THAT(poll_until(2), ElementsAre(1, -5));
}

TEST_F(NamedPoolEngine, AFenceThatIsAnEventWaitsForTheCopyAlone) {
  make(1);
  submit(1, {home.content(1, 10)});
  told.next_fence = fence{fence::kind_t::event, 77};
  const auto made = engine->make_fence(5, {1});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->kind, fence::kind_t::event);
  copied(1);
  EXPECT_THAT(poll_until(1), ElementsAre(1));
}

TEST_F(NamedPoolEngine, FencesOfOtherJobsPass) {
  make(1);
  submit(1, {home.content(1, 10)});
  EXPECT_FALSE(engine->make_fence(5, {9}));
  told.fences = {5};
  EXPECT_THAT(poll(), ElementsAre(-5));
}

// -- ends ---------------------------------------------------------------------

/// G7: nobody polls after it.
TEST_F(NamedPoolEngine, WhatWasCopiedIsReportedBeforeADeviceIsLost) {
  make(2);
  submit(1, {home.content(1, 10), home.content(2, 20)});
  submit(2, {home.content(3, 30)});
  copied(1);
  copied(2, copy_result::failed);
  told.lost = {ec::device_failure, "gone"};
  EXPECT_THAT(poll(), ElementsAre(2, 1));
  EXPECT_TRUE(is_valid(1));
  EXPECT_FALSE(is_valid(3));
}

TEST_F(NamedPoolEngine, WhatWasNotReportedIsNotKept) {
  make(1);
  home.store(2, 22);
  submit(1, {home.content(1, 10)});
  copied(1);
  engine.reset();
  ASSERT_EQ(home.open().code, ec::none);
  EXPECT_THAT(home.kept(), ElementsAre(2));
}

} // namespace
} // namespace kvtide::gpu
