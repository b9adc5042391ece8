// SPDX-License-Identifier: Apache-2.0

#include "core/order_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

using ::testing::ElementsAre;

namespace kvtide::core {
namespace {

order_log::listener into(std::vector<std::string>& list) {
  return [&list](const order_breach& x) {
    list.push_back(to_string(x.rule) + " " + x.text);
  };
}

TEST(OrderLog, TellsTheFirstOfAKindAndHearsAll) {
  std::vector<std::string> first;
  std::vector<std::string> all;
  order_log uut{into(first), into(all)};
  uut.breach(order_rule::s1, "an answer too many", "turn 1");
  uut.breach(order_rule::s1, "an answer too many", "turn 2");
  uut.breach(order_rule::call, "a request named twice");
  EXPECT_THAT(first, ElementsAre("S1 an answer too many: turn 1",
                                 "call a request named twice"));
  EXPECT_THAT(all, ElementsAre("S1 an answer too many: turn 1",
                               "S1 an answer too many: turn 2",
                               "call a request named twice"));
}

TEST(OrderLog, CountsPerRuleAndInAll) {
  order_log uut;
  uut.breach(order_rule::s13, "no timer");
  uut.breach(order_rule::call, "a wrong call");
  uut.count(order_rule::s13);
  EXPECT_EQ(uut.total(), 3u);
  EXPECT_EQ(uut.counts()[0], 1u);
  EXPECT_EQ(uut.counts()[13], 2u);
}

} // namespace
} // namespace kvtide::core
