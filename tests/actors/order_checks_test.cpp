// SPDX-License-Identifier: Apache-2.0

#include "actors/order_checks.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace kvtide {
namespace {

using core::order_rule;

TEST(OrderChecksDeathTest, EndTheProcessAtABreachWhereTheyAreFatal) {
  EXPECT_EXIT(make_order_log("here", order_checks::fatal, {})
                .breach(order_rule::s9, "a job had a second outcome", "job 3"),
              ::testing::KilledBySignal(SIGABRT), "");
}

TEST(OrderChecks, OnlyCountElsewhere) {
  auto heard = std::vector<std::string>{};
  auto uut = make_order_log(
    "here", order_checks::count,
    [&](const core::order_breach& x) { heard.push_back(x.text); });
  uut.breach(order_rule::s9, "a job had a second outcome", "job 3");
  EXPECT_EQ(uut.total(), 1u);
  EXPECT_EQ(heard,
            std::vector<std::string>{"a job had a second outcome: job 3"});
}

TEST(OrderChecks, NeverEndTheProcessAtAWrongCall) {
  auto uut = make_order_log("here", order_checks::fatal, {});
  uut.breach(order_rule::call, "a step names a request twice");
  EXPECT_EQ(uut.total(), 1u);
}

} // namespace
} // namespace kvtide
