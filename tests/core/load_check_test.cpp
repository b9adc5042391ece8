// SPDX-License-Identifier: Apache-2.0

#include "core/load_check.hpp"
#include "tests/core/breach_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::core {
namespace {

TEST(LoadCheck, S7NoBlockIsReusedWhileALoadMayWriteIt) {
  breach_list list;
  load_check uut{list.log};
  const auto load = job_on(7, job_kind::load, {0, 1}, 4);
  uut.started(load);
  uut.allocated(6);
  EXPECT_THAT(list.take(), IsEmpty());
  uut.allocated(5);
  EXPECT_THAT(list.take(), ElementsAre("S7 a block was reused that a load may "
                                       "still write: block 5, load 7"));
  uut.ended(load);
  uut.allocated(5);
  EXPECT_THAT(list.take(), IsEmpty());
}

} // namespace
} // namespace kvtide::core
