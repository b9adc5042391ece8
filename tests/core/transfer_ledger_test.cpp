// SPDX-License-Identifier: Apache-2.0

#include "core/transfer_ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

using ending = transfer_ledger::ending;

TEST(TransferLedger, EndsEachJobOnce) {
  transfer_ledger uut{100};
  uut.add(1, 0);
  uut.add(1, 50);
  EXPECT_EQ(uut.size(), 1u);
  EXPECT_EQ(uut.next_due(), 100);
  EXPECT_EQ(uut.end(1), ending::in_time);
  EXPECT_EQ(uut.end(1), ending::unknown);
  EXPECT_EQ(uut.size(), 0u);
}

TEST(TransferLedger, NamesALateJobOnceAndKeepsItUntilItEnds) {
  transfer_ledger uut{100};
  uut.add(2, 0);
  uut.add(1, 10);
  EXPECT_THAT(uut.take_late(99), IsEmpty());
  EXPECT_THAT(uut.take_late(110), ElementsAre(2, 1));
  EXPECT_THAT(uut.take_late(1'000), IsEmpty());
  EXPECT_EQ(uut.size(), 2u);
  EXPECT_EQ(uut.end(2), ending::late);
}

TEST(TransferLedger, SaysWhenTheNextJobIsLate) {
  transfer_ledger uut{100};
  EXPECT_EQ(uut.next_due(), never);
  uut.add(1, 0);
  uut.add(2, 10);
  uut.add(3, 20);
  EXPECT_EQ(uut.next_due(), 100);
  uut.end(2);
  uut.end(1);
  EXPECT_EQ(uut.next_due(), 120);
  EXPECT_THAT(uut.take_late(120), ElementsAre(3));
  EXPECT_EQ(uut.next_due(), never);
}

TEST(TransferLedger, EndsAllJobsInOrderOfTheirIds) {
  transfer_ledger uut{100};
  uut.add(7, 0);
  uut.add(5, 60);
  EXPECT_THAT(uut.take_late(100), ElementsAre(7));
  EXPECT_THAT(uut.clear(), ElementsAre(std::pair{job_id{5}, ending::in_time},
                                       std::pair{job_id{7}, ending::late}));
  EXPECT_EQ(uut.size(), 0u);
  EXPECT_EQ(uut.next_due(), never);
}

TEST(TransferLedger, NeverIsNotReached) {
  transfer_ledger uut{never};
  uut.add(1, 5);
  EXPECT_THAT(uut.take_late(never), IsEmpty());
}

} // namespace
} // namespace kvtide::core
