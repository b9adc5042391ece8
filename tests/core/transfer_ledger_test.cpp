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

TEST(TransferLedger, NamesItsJobs) {
  transfer_ledger uut{100};
  EXPECT_THAT(uut.ids(), IsEmpty());
  for (const auto id : {7, 2, 5})
    uut.add(static_cast<job_id>(id), 0);
  (void)uut.end(5);
  EXPECT_THAT(uut.ids(), ElementsAre(2, 7));
}

TEST(TransferLedger, DoesNotNameWhatWasMadeLate) {
  transfer_ledger uut{100};
  uut.add(1, 0);
  uut.add(2, 10);
  uut.make_late(1);
  uut.make_late(9);
  EXPECT_EQ(uut.next_due(), 110);
  uut.add(3, 20);
  uut.make_late(3);
  EXPECT_THAT(uut.take_late(1'000), ElementsAre(2));
  EXPECT_EQ(uut.next_due(), never);
  for (const auto id : {1, 2, 3})
    EXPECT_EQ(uut.end(static_cast<job_id>(id)), ending::late);
  EXPECT_EQ(uut.size(), 0u);
}

TEST(TransferLedger, MakesAllLate) {
  transfer_ledger uut{100};
  uut.add(1, 0);
  uut.add(2, 0);
  uut.make_all_late();
  EXPECT_EQ(uut.next_due(), never);
  EXPECT_EQ(uut.size(), 2u);
  uut.add(3, 50);
  EXPECT_EQ(uut.next_due(), 150);
  EXPECT_EQ(uut.end(1), ending::late);
  EXPECT_EQ(uut.end(3), ending::in_time);
}

} // namespace
} // namespace kvtide::core
