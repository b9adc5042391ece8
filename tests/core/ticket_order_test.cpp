// SPDX-License-Identifier: Apache-2.0

#include "core/ticket_order.hpp"

#include <gtest/gtest.h>

namespace kvtide::core {
namespace {

TEST(TicketOrder, S1TicketsAscend) {
  ticket_order uut;
  EXPECT_TRUE(uut.follows(1));
  EXPECT_TRUE(uut.follows(4));
  EXPECT_FALSE(uut.follows(4));
  EXPECT_FALSE(uut.follows(2));
  EXPECT_EQ(uut.last(), 4u);
  EXPECT_TRUE(uut.follows(5));
}

} // namespace
} // namespace kvtide::core
