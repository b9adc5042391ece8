// SPDX-License-Identifier: Apache-2.0

/// @file
/// Reports that are lost between a worker and the scheduler: no job is kept for
/// ever, and none has two outcomes (S9).

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

/// Silent ranks are asked after twice this time.
constexpr auto deadline = 1s;

class Silence : public ::testing::Test {
protected:
  Silence()
    : sys([] {
        auto out = with_ranks(2);
        out.job_deadline = deadline;
        return out;
      }()) {
    // nop
  }

  /// Job 0 stores a chunk of R, and is with both devices.
  void store() {
    sys.add(R, 4);
    EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
    (void)sys.step();
  }

  /// Job 1 loads two chunks for R.
  void load() {
    warm(sys, P, {{1, 2}}, 8);
    sys.add(R, 9, {P, 8});
    EXPECT_EQ(sys.lookup(R), 8);
    sys.alloc(R, {{4, 5, 6}}, 8);
    EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  }

  void wait_until_asked() {
    sys.pass(2 * deadline);
  }

  void expect_order_errors(std::uint64_t count) {
    EXPECT_EQ(sys.counters().order_errors, count);
  }

  test_system sys;
};

TEST_F(Silence, EndsWithDoneIfThatWasLost) {
  store();
  sys.lose_report(1, 0, job_status::done);
  sys.done(0);
  EXPECT_EQ(sys.host(R, 0), "pending");
  EXPECT_THAT(sys.jobs(), ElementsAre(0u));
  wait_until_asked();
  EXPECT_EQ(sys.host(R, 0), "hit");
  EXPECT_THAT(sys.jobs(), IsEmpty());
  expect_order_errors(0);
}

TEST_F(Silence, EndsWithFailedIfThatWasLost) {
  load();
  sys.lose_report(1, 1, job_status::failed);
  sys.done(1, {rank_id{1}, true, 1});
  sys.done(1, {rank_id{0}});
  EXPECT_THAT(sys.notices(), IsEmpty());
  wait_until_asked();
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 4 [4 5]"));
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  expect_order_errors(0);
}

TEST_F(Silence, EndsWithLateIfThatWasLost) {
  load();
  sys.lose_report(1, 1, job_status::late);
  sys.done(1, {rank_id{0}});
  sys.pass_deadline();
  EXPECT_THAT(sys.notices(), IsEmpty());
  wait_until_asked();
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4 5] new"));
  EXPECT_EQ(sys.counters().pinned_slots, 2u) << "it may still read";
  sys.done(1, {rank_id{1}});
  EXPECT_THAT(sys.notices(), ElementsAre("released R [4 5]"));
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  expect_order_errors(0);
}

TEST_F(Silence, EndsIfLateWasLostAndTheCopyHasEndedSince) {
  sys.expect_breaches(); // Drained, but never late.
  load();
  sys.lose_report(1, 1, job_status::late);
  sys.done(1, {rank_id{0}});
  sys.pass_deadline();
  sys.done(1, {rank_id{1}});
  expect_order_errors(1); // Drained, but never late.
  wait_until_asked();
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4 5] new",
                                         "released R [4 5]"));
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  expect_order_errors(1);
}

TEST_F(Silence, ReleasesBlocksIfDrainedWasLost) {
  load();
  sys.done(1, {rank_id{0}});
  sys.pass_deadline();
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4 5] new"));
  sys.lose_report(1, 1, job_status::drained);
  sys.done(1, {rank_id{1}});
  EXPECT_THAT(sys.notices(), IsEmpty());
  wait_until_asked();
  EXPECT_THAT(sys.notices(), ElementsAre("released R [4 5]"));
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
  expect_order_errors(0);
}

TEST_F(Silence, FailsAJobWhosePlanWasLost) {
  sys.lose_stores(1);
  store();
  sys.done(0, {rank_id{0}});
  wait_until_asked();
  EXPECT_EQ(sys.host(R, 0), "miss");
  EXPECT_EQ(sys.counters().free_slots, 64u);
  EXPECT_EQ(sys.step({{{R, 0, {}}}, {}}), "S1{R#0<-1}") << "R8";
  (void)sys.step();
  sys.done(1);
  EXPECT_EQ(sys.host(R, 0), "hit");
  expect_order_errors(0);
}

TEST_F(Silence, AsksAgainIfTheAnswerIsLostToo) {
  store();
  sys.lose_report(1, 0, job_status::done);
  sys.done(0);
  sys.lose_report(1, 0, job_status::done);
  wait_until_asked();
  EXPECT_EQ(sys.host(R, 0), "pending");
  wait_until_asked();
  EXPECT_EQ(sys.host(R, 0), "hit");
}

TEST_F(Silence, LeavesAloneWhatIsOnlySlow) {
  sys.add(R, 4);
  sys.hold_compute();
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
  for (auto i = 0; i < 3; ++i)
    wait_until_asked(); // A store behind its compute is on no device.
  EXPECT_THAT(sys.jobs(), ElementsAre(0u));
  sys.end_compute();
  sys.done(0);
  EXPECT_EQ(sys.host(R, 0), "hit");
  expect_order_errors(0);
}

TEST_F(Silence, LeavesAloneALoadThatNoStepHasDelivered) {
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  wait_until_asked();
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.done(1);
  EXPECT_THAT(sys.notices(), ElementsAre("load_done R 1"));
}

TEST_F(Silence, WorkersForgetOutcomesThatNobodyAsksFor) {
  // One copy never ends.
  store();
  sys.pass_deadline();
  for (request_id id = 1'000; id < 1'100; ++id) {
    sys.add(id, 4);
    (void)sys.step({{{id, 4, {{static_cast<block_id>(id)}}}}, {}});
    (void)sys.step();
    const auto job = id - 1'000 + 1;
    sys.done(job);
    (void)sys.finish(id, finish_reason::stop);
    EXPECT_LE(sys.remembered(0), 2u);
    EXPECT_LE(sys.remembered(1), 2u);
  }
  expect_order_errors(0);
}

} // namespace
} // namespace kvtide::test
