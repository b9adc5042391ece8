// SPDX-License-Identifier: Apache-2.0

/// @file
/// A rank in another actor system joins, serves, is lost and comes back, over
/// real sockets on loopback.

#include "tests/net/deployment.hpp"
#include "tests/net/open_files.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>

namespace kvtide {
namespace {

class Join : public ::testing::Test, public test::deployment {};

TEST_F(Join, ServesWithARankThatDialsIn) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  EXPECT_EQ(address_of(*engine_network).rfind("127.0.0.1:", 0), 0U);
  ASSERT_NO_FATAL_FAILURE(start_worker());
  EXPECT_EQ(address_of(*worker_network), "");
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
  engine->get_stats();
  const auto answer = hear<stats_answer>();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->values.order_errors, 0U);
  EXPECT_GE(answer->values.stored_chunks, 2U);
}

TEST_F(Join, ServesWithARankThatIsDialed) {
  engine_dials = true;
  engine_side.listen.clear();
  worker_side.listen = "127.0.0.1:0";
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
}

TEST_F(Join, ServesThroughIpv6) {
  auto addresses = std::ifstream{"/proc/net/if_inet6"};
  if (addresses.peek() == std::ifstream::traits_type::eof())
    GTEST_SKIP() << "this machine has no IPv6";
  engine_side.listen = "[::1]:0";
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
}

TEST_F(Join, HearsOfALossAndOfTheNextLife) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
  there.reset();
  far.reset();
  const auto lost = hear<rank_lost>();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->rank, 1U);
  run_step({}); // Goes on without it.
  ASSERT_NO_FATAL_FAILURE(start_worker());
  const auto back = hear<rank_back>();
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rank, 1U);
  EXPECT_FALSE(back->same_life);
  EXPECT_GT(back->incarnation, lost->incarnation);
  ASSERT_NO_FATAL_FAILURE(serve());
}

TEST_F(Join, FindsTheNextSchedulerWithoutANewStart) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  // The next one has to be found at the same place.
  engine_side.listen = address_of(*engine_network);
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
  here.reset();
  engine.reset();
  const auto notice = there->hear<rank_failed>();
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->reason.code, ec::scheduler_unreachable);
  // Steps of the rank go on alone.
  ASSERT_EQ(there->begin(step + 1).code, ec::none);
  there->end(step + 1);
  step = 0;
  engine_ear = {};
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  step = 100;
  ASSERT_NO_FATAL_FAILURE(serve());
}

TEST_F(Join, ClosesEveryDescriptorAndThread) {
  // CAF opens some for good the first time.
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  const auto end = [&] {
    here.reset();
    there.reset();
    far.reset();
    engine.reset();
    engine_ear = {};
    engine_network = nullptr;
    worker_network = nullptr;
  };
  // They have been waited for, but not by the kernel.
  const auto await_threads = [] {
    const auto deadline = std::chrono::steady_clock::now() + test::patience;
    while (test::threads() > 1 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return test::threads();
  };
  end();
  EXPECT_EQ(await_threads(), 1U);
  const auto files = test::open_files();
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  EXPECT_GT(test::open_files(), files);
  EXPECT_GT(test::threads(), 1U);
  end();
  EXPECT_EQ(test::open_files(), files);
  EXPECT_EQ(await_threads(), 1U);
}

} // namespace
} // namespace kvtide
