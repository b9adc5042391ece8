// SPDX-License-Identifier: Apache-2.0

#include "core/slot_check.hpp"
#include "tests/core/breach_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

TEST(SlotCheck, S8AStoreNeedsASlotThatNobodyTouches) {
  breach_list list;
  slot_check uut{list.log};
  uut.started(job_on(1, job_kind::load, {3}));
  uut.started(job_on(2, job_kind::store, {4, 3}));
  EXPECT_THAT(list.take(),
              ElementsAre("S8 a slot was handed out that a copy may touch: "
                          "slot 3 for job 2, but job 1 has not ended"));
}

TEST(SlotCheck, S8ALoadNeedsASlotThatNobodyWrites) {
  breach_list list;
  slot_check uut{list.log};
  uut.started(job_on(1, job_kind::load, {3}));
  uut.started(job_on(2, job_kind::load, {3}));
  EXPECT_THAT(list.take(), IsEmpty());
  uut.started(job_on(3, job_kind::store, {5}));
  uut.started(job_on(4, job_kind::load, {5}));
  EXPECT_EQ(list.take().size(), 1u);
}

TEST(SlotCheck, S8WhatEndedTouchesNothing) {
  breach_list list;
  slot_check uut{list.log};
  const auto store = job_on(1, job_kind::store, {3});
  uut.started(store);
  uut.ended(store);
  uut.started(job_on(2, job_kind::store, {3}));
  EXPECT_THAT(list.take(), IsEmpty());
}

} // namespace
} // namespace kvtide::core
