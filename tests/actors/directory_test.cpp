// SPDX-License-Identifier: Apache-2.0

/// @file
/// Replicas, a directory and a router in one process, with real threads.

#include "kvtide/directory.hpp"

#include "tests/support/small_replica.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace kvtide {
namespace {

class Directory : public ::testing::Test {
protected:
  Directory() {
    where.emplace(directory::start({}).value());
    auto opts = router_options{};
    opts.place.here = &*where;
    opts.shared = test::small_options();
    opts.timeout = 10s;
    uut.emplace(router::start(opts).value());
  }

  ::testing::AssertionResult
  hears(std::int32_t text,
        const std::function<bool(const replica_choice&)>& wanted) {
    return test::hears(*uut, text, wanted);
  }

  [[nodiscard]] std::shared_ptr<publisher>
  teller(const std::string& name) const {
    return make_publisher({{&*where, {}, {}}, name}).value();
  }

  std::optional<directory> where;
  std::optional<router> uut;
};

TEST_F(Directory, APromptGoesWhereItIsCached) {
  auto a = test::small_replica{teller("a")};
  auto b = test::small_replica{teller("b")};
  b.serve(42);
  EXPECT_TRUE(hears(42, [](const replica_choice& x) {
    return x.replica == "b" && x.tokens == 64 && x.chunks == 4
        && x.all.size() == 2;
  }));
  a.serve(43);
  EXPECT_TRUE(hears(43, [](const replica_choice& x) {
    return x.replica == "a" && x.tokens == 64;
  }));
}

TEST_F(Directory, WhatIsResetIsForgotten) {
  auto a = test::small_replica{teller("a")};
  a.serve(42);
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.tokens == 64; }));
  EXPECT_TRUE(a.engine().reset(test::patience));
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.tokens == 0; }));
  a.serve(42);
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.tokens == 64; }));
}

TEST_F(Directory, AReplicaThatEndsIsForgotten) {
  {
    auto a = test::small_replica{teller("a")};
    a.serve(42);
    EXPECT_TRUE(hears(42, [](const auto& x) { return x.tokens == 64; }));
  }
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.all.empty(); }));
  auto again = test::small_replica{teller("a")};
  EXPECT_TRUE(
    hears(42, [](const auto& x) { return x.replica == "a" && x.tokens == 0; }));
}

TEST_F(Directory, ReplicasAndRoutersOutliveIt) {
  auto a = test::small_replica{teller("a")};
  a.serve(42);
  where.reset();
  a.serve(43);
  EXPECT_TRUE(
    hears(42, [](const auto& x) { return x.reason.code == ec::timeout; }));
}

TEST_F(Directory, ARouterIsPolledAsARuntimeIs) {
  auto a = test::small_replica{teller("a")};
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.all.size() == 1; }));
  const auto first = uut->best_replica(test::keys_of(1));
  const auto second = uut->best_replica(test::keys_of(2));
  auto heard = std::vector<replica_choice>{};
  while (heard.size() < 2 && uut->wait(test::patience))
    for (auto& one : uut->poll())
      heard.push_back(std::move(one));
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].ticket, first);
  EXPECT_EQ(heard[1].ticket, second);
  EXPECT_EQ(heard[1].replica, "a");
}

TEST(DirectoryOptions, WhatIsWrongIsSaid) {
  EXPECT_EQ(directory::start({nullptr, 0}).failure().code, ec::invalid_options);
  EXPECT_EQ(make_publisher({{}, "a"}).failure().code, ec::invalid_options);
  EXPECT_EQ(
    make_publisher({{nullptr, "127.0.0.1:1", nullptr}, "a"}).failure().code,
    ec::invalid_options);
  auto where = directory::start({}).value();
  EXPECT_EQ(make_publisher({{&where, {}, {}}, ""}).failure().code,
            ec::invalid_options);
  auto opts = router_options{};
  opts.place.here = &where;
  opts.timeout = 0ms;
  EXPECT_EQ(router::start(opts).failure().code, ec::invalid_options);
  opts.timeout = 50ms;
  opts.least_share = 1.1;
  EXPECT_EQ(router::start(opts).failure().code, ec::invalid_options);
  opts.least_share = 1;
  opts.shared.groups.front().sliding_window_tokens = 64;
  EXPECT_EQ(router::start(opts).failure().code, ec::unsupported);
}

} // namespace
} // namespace kvtide
