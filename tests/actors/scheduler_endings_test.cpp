// SPDX-License-Identifier: Apache-2.0

/// @file
/// The table of end states. Intent, capability and the jobs that follow are
/// looked at one by one: some rows look alike from outside.

#include "core/layout.hpp"
#include "core/rules.hpp"
#include "core/store_intent.hpp"
#include "core/store_plan.hpp"
#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <tuple>

using ::testing::Combine;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Values;
using ::testing::ValuesIn;

namespace kvtide::test {
namespace {

constexpr token_count prompt_tokens = 10;

enum class story {
  queued_abort,
  preempted_abort,
  running_abort,
  stop,
  length,
  repetition,
  error,
};

enum class scheduling { sync, async };

/// How a request stands when its last step is planned, and what follows.
struct end_state {
  story what;
  finish_reason reason;
  scheduling when;
  rule_set rules;
  /// What the engine says at the end.
  token_count known;
  token_count computed;
  /// What is left of the block table.
  std::size_t blocks;
  // -- expected ---------------------------------------------------------------
  token_count intent;
  /// Chunks that could be stored if all known tokens were wanted: the same
  /// whatever the reason.
  std::size_t capability;
  /// What the last step answers.
  const char* jobs;
  /// The job moves what nobody computed, as the recorded behaviour does.
  bool wrong_bytes;
};

constexpr auto ref = rule_set::reference;
constexpr auto safe = rule_set::safe;
constexpr auto sync = scheduling::sync;
constexpr auto async = scheduling::async;

// clang-format off
constexpr end_state table[] = {
  // Never ran: no blocks, so nothing can be stored, and nothing is wanted.
  {story::queued_abort, finish_reason::abort, sync, ref, 10, 0, 0,   0, 0, "-", false},
  {story::queued_abort, finish_reason::abort, async, ref, 10, 0, 0,  0, 0, "-", false},
  {story::queued_abort, finish_reason::abort, sync, safe, 10, 0, 0,  0, 0, "-", false},
  {story::queued_abort, finish_reason::abort, async, safe, 10, 0, 0, 0, 0, "-", false},
  // Looks the same, but here the recorded rules could store: the table is
  // still there, only the intent is 0. Under safe both are (R3).
  {story::preempted_abort, finish_reason::abort, sync, ref, 11, 0, 3,   0, 2, "-", false},
  {story::preempted_abort, finish_reason::abort, async, ref, 13, 0, 4,  0, 3, "-", false},
  {story::preempted_abort, finish_reason::abort, sync, safe, 11, 0, 0,  0, 0, "-", false},
  {story::preempted_abort, finish_reason::abort, async, safe, 13, 0, 0, 0, 0, "-", false},
  // In the middle of prefill: two chunks could be stored, one was computed and
  // is stored already.
  {story::running_abort, finish_reason::abort, sync, ref, 10, 6, 3,   6, 2, "-", false},
  {story::running_abort, finish_reason::abort, async, ref, 10, 6, 3,  6, 2, "-", false},
  {story::running_abort, finish_reason::abort, sync, safe, 10, 6, 3,  6, 2, "-", false},
  {story::running_abort, finish_reason::abort, async, safe, 10, 6, 3, 6, 2, "-", false},
  // The last sampled token ends a chunk and was never computed (R1, FIN-03).
  {story::stop, finish_reason::stop, sync, ref, 12, 11, 3,    12, 3, "S1{R#2<-3}", true},
  {story::stop, finish_reason::stop, async, ref, 13, 13, 4,   13, 3, "S1{R#2<-3}", false},
  {story::stop, finish_reason::stop, sync, safe, 12, 11, 3,   11, 3, "-", false},
  {story::stop, finish_reason::stop, async, safe, 13, 13, 4,  12, 3, "S1{R#2<-3}", false},
  // No token is computed in vain here, even when asynchronous.
  {story::length, finish_reason::length, sync, ref, 12, 11, 3,   12, 3, "S1{R#2<-3}", true},
  {story::length, finish_reason::length, async, ref, 13, 12, 4,  13, 3, "S1{R#2<-3}", false},
  {story::length, finish_reason::length, sync, safe, 12, 11, 3,  11, 3, "-", false},
  {story::length, finish_reason::length, async, safe, 13, 12, 4, 12, 3, "S1{R#2<-3}", false},
  {story::repetition, finish_reason::repetition, sync, ref, 12, 11, 3,   12, 3, "S1{R#2<-3}", true},
  {story::repetition, finish_reason::repetition, async, ref, 13, 13, 4,  13, 3, "S1{R#2<-3}", false},
  {story::repetition, finish_reason::repetition, sync, safe, 12, 11, 3,  11, 3, "-", false},
  {story::repetition, finish_reason::repetition, async, safe, 13, 13, 4, 12, 3, "S1{R#2<-3}", false},
  // In the middle of prefill: the recorded rules publish what nobody computed
  // (R2).
  {story::error, finish_reason::error, sync, ref, 10, 6, 3,   10, 2, "S1{R#1<-2}", true},
  {story::error, finish_reason::error, async, ref, 10, 6, 3,  10, 2, "S1{R#1<-2}", true},
  {story::error, finish_reason::error, sync, safe, 10, 6, 3,  6, 2, "-", false},
  {story::error, finish_reason::error, async, safe, 10, 6, 3, 6, 2, "-", false},
};
// clang-format on

std::string name_of(const end_state& x) {
  static constexpr const char* stories[] = {"queued_abort",
                                            "preempted_then_aborted",
                                            "running_abort",
                                            "eos",
                                            "length_cap",
                                            "repetition",
                                            "error_in_mid_execution"};
  return std::string{stories[static_cast<int>(x.what)]}
       + (x.rules == safe ? "_safe" : "_reference")
       + (x.when == sync ? "_sync" : "_async");
}

std::ostream& operator<<(std::ostream& out, const end_state& x) {
  return out << name_of(x);
}

class EndState : public ::testing::TestWithParam<end_state> {
protected:
  /// Two tokens are sampled in two steps of one token each. With asynchronous
  /// scheduling the second and a third are planned before any is known.
  void decode(test_system& sys, bool in_vain) {
    if (GetParam().when == sync) {
      EXPECT_EQ(sys.step({{{R, 10, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
      sys.out(R, 1);
      EXPECT_EQ(sys.step({{{R, 1, {}}}, {}}), "-");
      sys.out(R, 1);
      return;
    }
    EXPECT_EQ(sys.step({{{R, 10, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
    EXPECT_EQ(sys.step({{{R, 1, {}}}, {}}), "-");
    EXPECT_EQ(sys.step({{{R, 1, {}}}, {}}), "-");
    if (in_vain) {
      EXPECT_EQ(sys.step({{{R, 1, {{4}}}}, {}}), "-");
    }
    sys.out(R, 3);
  }

  void tell(test_system& sys) {
    switch (GetParam().what) {
      case story::queued_abort:
        EXPECT_EQ(sys.lookup(R), 0);
        EXPECT_EQ(sys.step(), "-");
        break;
      case story::preempted_abort:
        if (GetParam().when == sync) {
          EXPECT_EQ(sys.step({{{R, 10, {{1, 2, 3}}}}, {}}),
                    "S0{R#0<-1,R#1<-2}");
          sys.out(R, 1);
        } else {
          decode(sys, true);
        }
        sys.done(0);
        EXPECT_EQ(sys.step({{}, {R}}), "-");
        break;
      case story::running_abort:
      case story::error:
        if (GetParam().when == async)
          sys.hold_compute(); // The end comes while the step is computed.
        EXPECT_EQ(sys.step({{{R, 6, {{1, 2, 3}}}}, {}}), "S0{R#0<-1}");
        break;
      case story::stop:
      case story::repetition:
        decode(sys, true);
        break;
      case story::length:
        decode(sys, false);
        break;
    }
  }
};

TEST_P(EndState, HasItsIntent) {
  const auto& row = GetParam();
  auto wish = core::store_wish{};
  wish.prompt = prompt_tokens;
  wish.known = row.known;
  wish.computed = row.computed;
  wish.ending = row.reason;
  EXPECT_EQ(core::wanted_tokens(wish, core::rules_of(row.rules)), row.intent);
}

TEST_P(EndState, HasItsCapability) {
  const auto& row = GetParam();
  const auto shape = std::make_shared<const core::layout>(
    core::make_layout(plain_options(row.rules)).value());
  auto keys = core::key_list{0, 0};
  for (char x = 0; x < row.known / 4; ++x)
    keys.append({&x, 1});
  auto tables = core::block_tables{1};
  for (block_id x = 1; x <= row.blocks; ++x)
    tables.append(0, {&x, 1});
  const auto key_views = std::vector{keys.view()};
  const auto next = std::vector<std::size_t>{0};
  const auto plan
    = core::plan_store(*shape, core::rules_of(row.rules),
                       {prompt_tokens, key_views, tables}, row.known, next);
  EXPECT_THAT(plan.storable, ElementsAre(row.capability));
}

TEST_P(EndState, LeadsToItsJobs) {
  const auto& row = GetParam();
  auto sys = test_system{plain_options(row.rules)};
  sys.add(R, prompt_tokens);
  tell(sys);
  EXPECT_EQ(sys.known(R), row.known);
  EXPECT_EQ(sys.computed(R), row.computed);
  EXPECT_THAT(sys.finish(R, row.reason), IsEmpty());
  EXPECT_EQ(sys.step(), row.jobs);
  while (!sys.computes())
    sys.end_compute();
  sys.end_compute();
  for (auto job : sys.jobs())
    sys.done(job);
  EXPECT_EQ(!sys.wrong_bytes().empty(), row.wrong_bytes);
  EXPECT_TRUE(sys.empty());
  EXPECT_THAT(sys.notices(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Table, EndState, ValuesIn(table),
                         [](const ::testing::TestParamInfo<end_state>& row) {
                           return name_of(row.param);
                         });

} // namespace
} // namespace kvtide::test
