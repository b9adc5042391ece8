// SPDX-License-Identifier: Apache-2.0

/// @file
/// A peer that is connected connects once more: because it has noticed a loss
/// that nobody here has, or because somebody says its name.

#include "tests/net/deployment.hpp"
#include "tests/net/intruder.hpp"
#include "tests/net/log_ear.hpp"

#include <caf/binary_serializer.hpp>
#include <caf/node_id.hpp>
#include <caf/optional.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace kvtide {
namespace {

using test::intruder;

/// What a peer of CAF says first.
std::string introduction(std::uint32_t name) {
  const auto id = caf::make_node_id(name, std::string(40, 'a'));
  auto bytes = std::vector<char>{};
  auto sink = caf::binary_serializer{nullptr, bytes};
  EXPECT_FALSE(sink(*id));
  return test::frame(1, static_cast<unsigned>(bytes.size()))
       + std::string{bytes.begin(), bytes.end()};
}

const auto heartbeat = test::frame(6, 0);

class KnownPeer : public ::testing::Test, public test::deployment {
protected:
  void start(std::chrono::milliseconds detection) {
    engine_side.detection = worker_side.detection = detection;
    ASSERT_NO_FATAL_FAILURE(start_engine());
    ASSERT_NO_FATAL_FAILURE(start_worker());
    ASSERT_NO_FATAL_FAILURE(await_rank());
    ear = {};
  }

  [[nodiscard]] intruder connect(std::uint32_t name) const {
    auto out = intruder{address_of(*engine_network)};
    EXPECT_TRUE(out.connected());
    out.send(introduction(name));
    return out;
  }

  /// Waits until so many have introduced themselves.
  void await_connected(std::size_t count) const {
    const auto deadline = std::chrono::steady_clock::now() + test::patience;
    while (ear.count("is connected") < count) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << ear.text();
      std::this_thread::yield();
    }
  }

  test::log_ear ear;
};

TEST_F(KnownPeer, IsSentAwayWhileItsConnectionLives) {
  ASSERT_NO_FATAL_FAILURE(start(20s));
  const auto first = connect(1);
  ASSERT_NO_FATAL_FAILURE(await_connected(1));
  for (auto i = 0; i < 3; ++i)
    EXPECT_TRUE(connect(1).closed(test::patience));
  EXPECT_EQ(ear.count("its last connection has to end first"), 3U)
    << ear.text();
  // Somebody else is welcome.
  const auto other = connect(2);
  ASSERT_NO_FATAL_FAILURE(await_connected(2));
  ASSERT_NO_FATAL_FAILURE(serve());
  EXPECT_TRUE(first.send(heartbeat));
  EXPECT_TRUE(other.send(heartbeat));
  EXPECT_FALSE(first.closed(10ms));
  EXPECT_FALSE(other.closed(10ms));
  EXPECT_EQ(ear.count(" is gone"), 0U) << ear.text();
}

TEST_F(KnownPeer, ComesBackSoonIfItsConnectionIsSilent) {
  ASSERT_NO_FATAL_FAILURE(start(5s));
  const auto first = connect(1);
  ASSERT_NO_FATAL_FAILURE(await_connected(1));
  const auto deadline = std::chrono::steady_clock::now() + test::patience;
  // Each waits until it is sent away.
  while (ear.count("it came back before its loss was noticed") == 0) {
    ASSERT_TRUE(connect(1).closed(test::patience));
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << ear.text();
  }
  EXPECT_TRUE(first.closed(test::patience));
  EXPECT_EQ(ear.count(" is gone"), 1U) << ear.text();
  const auto next = connect(1);
  ASSERT_NO_FATAL_FAILURE(await_connected(2));
  ASSERT_NO_FATAL_FAILURE(serve());
  EXPECT_FALSE(next.closed(10ms));
}

} // namespace
} // namespace kvtide
