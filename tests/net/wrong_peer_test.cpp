// SPDX-License-Identifier: Apache-2.0

/// @file
/// Whoever dials somebody who is not wanted says so, and nothing else happens.

#include "kvtide/directory.hpp"

#include "tests/net/deployment.hpp"
#include "tests/net/log_ear.hpp"
#include "tests/support/small_replica.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

using namespace std::chrono_literals;

namespace kvtide {
namespace {

class WrongPeer : public ::testing::Test, public test::deployment {
protected:
  /// An engine and a worker, which serve.
  void start_all() {
    ASSERT_NO_FATAL_FAILURE(start_engine());
    ASSERT_NO_FATAL_FAILURE(start_worker());
    ASSERT_NO_FATAL_FAILURE(await_rank());
    ASSERT_NO_FATAL_FAILURE(serve());
  }

  /// @returns its address
  std::string start_directory() {
    auto opts = directory_options{};
    auto side = network_options{};
    side.listen = "127.0.0.1:0";
    opts.network = make_network(side).value();
    where.emplace(directory::start(opts).value());
    return where->address();
  }

  static directory_place dial(const std::string& address) {
    return {nullptr, address, make_network({}).value()};
  }

  static std::optional<router> start_router(const std::string& address) {
    auto opts = router_options{};
    opts.place = dial(address);
    opts.shared = test::small_options();
    opts.timeout = 10s;
    return router::start(opts).value();
  }

  /// One line says it.
  void expect_said(const std::string& sentence) {
    EXPECT_NE(ear.await(sentence), "") << ear.text();
    EXPECT_EQ(ear.count(sentence), 1U) << ear.text();
  }

  test::log_ear ear;
  std::optional<directory> where;
};

TEST_F(WrongPeer, AWorkerDialsADirectory) {
  const auto address = start_directory();
  auto opts = worker_options{};
  opts.shared = shared;
  opts.shared.network = make_network({}).value();
  opts.ranks = {1};
  opts.scheduler = address;
  auto lost = worker::start(opts);
  ASSERT_TRUE(lost) << lost.failure().text;
  expect_said("cannot reach the scheduler at " + address
              + ": a directory listens there: name the address of a scheduler");
  EXPECT_EQ(ear.count("reached the"), 0U) << ear.text();
  // Who is right there is served.
  auto asks = start_router(address);
  EXPECT_TRUE(test::hears(
    *asks, 1, [](const auto& x) { return x.reason.code == ec::none; }));
}

TEST_F(WrongPeer, AnEngineDialsADirectory) {
  const auto address = start_directory();
  auto opts = shared;
  opts.network = make_network({}).value();
  opts.workers.resize(2);
  opts.workers[1] = {worker_place::kind::dialed, address};
  auto started = runtime::start(opts);
  ASSERT_TRUE(started) << started.failure().text;
  expect_said("a directory listens there: name the address of a worker");
}

TEST_F(WrongPeer, APublisherAndARouterDialAScheduler) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  const auto address = address_of(*engine_network);
  const auto sentence = "cannot reach the directory at " + address
                      + ": a scheduler listens there: name the address of a "
                        "directory";
  {
    const auto teller = make_publisher({dial(address), "a"});
    ASSERT_TRUE(teller) << teller.failure().text;
    expect_said(sentence);
  }
  ear = {};
  auto asks = start_router(address);
  expect_said(sentence);
  EXPECT_EQ(asks->ask(test::keys_of(1)).reason.code, ec::timeout);
  ASSERT_NO_FATAL_FAILURE(serve());
}

TEST_F(WrongPeer, APublisherDialsAWorker) {
  engine_dials = true;
  engine_side.listen.clear();
  worker_side.listen = "127.0.0.1:0";
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  const auto teller = make_publisher({dial(address_of(*worker_network)), "a"});
  ASSERT_TRUE(teller) << teller.failure().text;
  expect_said("a worker listens there: name the address of a directory");
  ASSERT_NO_FATAL_FAILURE(serve());
}

} // namespace
} // namespace kvtide
