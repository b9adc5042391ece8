// SPDX-License-Identifier: Apache-2.0

/// @file
/// Whatever an engine says wrongly is counted once, under a name of its own
/// (R10). What comes of it otherwise is the matter of other tests.

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <ostream>
#include <string>
#include <vector>

using ::testing::ElementsAre;
using ::testing::StartsWith;

namespace kvtide::test {
namespace {

constexpr auto huge = std::numeric_limits<token_count>::max();

/// Made while R runs, step 1 was planned and its first block is stored.
struct wrong_call {
  const char* name;
  void (*make)(test_system&);
  const char* said;
};

void PrintTo(const wrong_call& x, std::ostream* out) {
  *out << x.name;
}

void step_2(test_system& sys, std::vector<step_row> rows,
            std::vector<finish_call> finished = {}) {
  sys.raw_step({2, std::move(rows), {}, std::move(finished)});
}

step_row row_of(request_id id) {
  return {id, row_kind::running, {}, 4, 1, 12};
}

const auto wrong_calls = std::vector<wrong_call>{
  {"outputs_of_a_stranger",
   [](test_system& sys) {
     sys.raw_outputs({1, {{'X', 4, 4}}});
   },
   "outputs name a request that is not tracked"},
  {"outputs_out_of_range",
   [](test_system& sys) {
     sys.raw_outputs({1, {{R, huge, 4}}});
   },
   "outputs name a request that is not tracked or has"},
  {"finished_twice",
   [](test_system& sys) {
     sys.raw_finish({R, finish_reason::stop, 4, 4});
     sys.raw_finish({R, finish_reason::stop, 4, 4});
   },
   "a request was finished twice"},
  {"finished_for_an_unknown_reason",
   [](test_system& sys) {
     sys.raw_finish({R, static_cast<finish_reason>(77), 4, 4});
   },
   "a request ended for a reason that this version does not know"},
  {"scheduled_twice",
   [](test_system& sys) {
     step_2(sys, {row_of(R), row_of(R)});
   },
   "a step names a request twice"},
  {"scheduled_but_never_added",
   [](test_system& sys) { step_2(sys, {row_of('X')}); },
   "a step schedules a request that is not tracked or has finished"},
  {"scheduled_after_its_end",
   [](test_system& sys) {
     sys.raw_finish({R, finish_reason::stop, 4, 4});
     step_2(sys, {row_of(R)});
   },
   "a step schedules a request that is not tracked or has finished"},
  {"malformed_row",
   [](test_system& sys) {
     step_2(sys, {{R, row_kind::running, {}, -1, 1, 12}});
   },
   "a step has a malformed row"},
  {"tail_of_a_request_that_goes_on",
   [](test_system& sys) {
     step_2(sys, {}, {{R, finish_reason::stop, 4, 4}});
   },
   "a step names a request as finished that is not"},
  {"tail_out_of_range",
   [](test_system& sys) {
     sys.raw_finish({R, finish_reason::stop, 4, 4});
     step_2(sys, {}, {{R, finish_reason::stop, huge, 4}});
   },
   "a step ends a request with a number of tokens that is out of range"},
  {"blocks_behind_no_table",
   [](test_system& sys) {
     (void)sys.lookup(R); // It runs: its table is gone now.
     step_2(sys, {{R, row_kind::running, {{2}}, 4, 1, 12}});
   },
   "a running request has new blocks, but no block table"},
};

class WrongCall : public ::testing::TestWithParam<wrong_call> {};

INSTANTIATE_TEST_SUITE_P(Kinds, WrongCall, ::testing::ValuesIn(wrong_calls),
                         [](const auto& x) {
                           return std::string{x.param.name};
                         });

TEST_P(WrongCall, is_counted_once_and_named) {
  auto sys = test_system{plain_options()};
  sys.expect_wrong_calls();
  sys.add(R, 12);
  EXPECT_EQ(sys.step({{{R, 4, {{1}}}}, {}}), "S0{R#0<-1}");
  GetParam().make(sys);
  EXPECT_THAT(sys.breaches(),
              ElementsAre(StartsWith(std::string{"call "} + GetParam().said)));
  EXPECT_EQ(sys.counters().order_errors, 1u);
}

} // namespace
} // namespace kvtide::test
