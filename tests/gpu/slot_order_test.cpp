// SPDX-License-Identifier: Apache-2.0

#include "gpu/slot_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class slot_order_test : public ::testing::Test {
protected:
  std::vector<job_id> add(job_id id, job_kind kind,
                          const std::vector<slot_id>& slots) {
    std::vector<job_id> before;
    order_.add(id, kind, slots, before);
    return before;
  }

  slot_order order_;
};

TEST_F(slot_order_test, AStoreWaitsForAllEarlierJobsOnItsSlot) {
  EXPECT_THAT(add(0, job_kind::store, {4}), IsEmpty());
  EXPECT_THAT(add(1, job_kind::load, {4}), ElementsAre(0));
  EXPECT_THAT(add(2, job_kind::load, {4}), ElementsAre(0));
  EXPECT_THAT(add(3, job_kind::store, {4}), ElementsAre(0, 1, 2));
  EXPECT_THAT(add(4, job_kind::load, {4}), ElementsAre(3));
}

TEST_F(slot_order_test, OtherSlotsAreOtherMatters) {
  add(0, job_kind::store, {1});
  EXPECT_THAT(add(1, job_kind::store, {2}), IsEmpty());
  EXPECT_THAT(add(2, job_kind::load, {1, 2}), ElementsAre(0, 1));
}

TEST_F(slot_order_test, AJobNeverWaitsForItself) {
  EXPECT_THAT(add(0, job_kind::store, {1, 1}), IsEmpty());
}

TEST_F(slot_order_test, ForgetsWhatEnded) {
  add(0, job_kind::store, {1, 2});
  add(1, job_kind::load, {1, 1});
  order_.remove(0, {1, 2});
  EXPECT_THAT(add(2, job_kind::load, {1, 2}), IsEmpty());
  order_.remove(1, {1, 1});
  EXPECT_THAT(add(3, job_kind::store, {1, 2}), ElementsAre(2, 2));
  order_.remove(2, {1, 2});
  order_.remove(3, {1, 2});
  order_.remove(3, {1, 2});
  EXPECT_EQ(order_.size(), 0u);
}

} // namespace
} // namespace kvtide::gpu
