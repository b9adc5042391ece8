// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvtide::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Recorder : public ::testing::Test {
protected:
  void SetUp() override {
    uut.enter(7, "step");
  }

  recorder uut{"f", nullptr};
};

TEST_F(Recorder, FindsNothingInEqualAnswers) {
  uut.compare(json::parse(R"({"flush":[1],"target":4})"),
              json::parse(R"({"flush":[1],"target":4.0})"));
  EXPECT_THAT(uut.mismatches(), IsEmpty());
}

TEST_F(Recorder, NamesTheSmallestPartThatDiffers) {
  uut.compare(json::parse(R"({"jobs":[{"job":1,"keys":["a"]}],"flush":[]})"),
              json::parse(R"({"jobs":[{"job":1,"keys":["b"]}],"flush":[2]})"));
  EXPECT_THAT(
    uut.mismatches(),
    ElementsAre("f:7: step: flush: got [2], want []",
                "f:7: step: jobs[0].keys: got [\"b\"], want [\"a\"]"));
}

TEST_F(Recorder, ShowsListsOfOtherLengthAsAWhole) {
  uut.compare(json::parse(R"({"jobs":[{"job":1}]})"),
              json::parse(R"({"jobs":[]})"));
  EXPECT_THAT(uut.mismatches(),
              ElementsAre("f:7: step: jobs: got [], want [{\"job\":1}]"));
}

TEST_F(Recorder, ComparesOnlyWhatIsExpected) {
  uut.compare(json::parse(R"({"host":{"free":1}})"),
              json::parse(R"({"host":{"free":1,"writing":2},"jobs":[]})"));
  EXPECT_THAT(uut.mismatches(), IsEmpty());
}

TEST_F(Recorder, StopsAfterTwentyMismatches) {
  for (auto i = 0; i < 30; ++i) {
    EXPECT_EQ(uut.enough(), i >= 20);
    uut.complain("no");
  }
  EXPECT_EQ(uut.mismatches().size(), recorder::limit);
}

TEST_F(Recorder, StopsAtOnceWhenThereIsNoPointInGoingOn) {
  uut.give_up("no");
  EXPECT_TRUE(uut.enough());
  EXPECT_THAT(uut.mismatches(), ElementsAre("f:7: step: no"));
}

} // namespace
} // namespace kvtide::conformance
