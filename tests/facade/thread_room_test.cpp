// SPDX-License-Identifier: Apache-2.0

#include "actors/thread_room.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace kvtide {
namespace {

/// Leaves room for a few stacks.
void limit_address_space() {
  auto pages = rlim_t{0};
  std::ifstream{"/proc/self/statm"} >> pages;
  auto limit = rlimit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur
    = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (64u << 20);
  ::setrlimit(RLIMIT_AS, &limit);
}

void try_too_many() {
  limit_address_space();
  const auto refused = check_thread_room(1'000);
  std::fputs(refused.text.c_str(), stderr);
  std::_Exit(refused.code == ec::out_of_memory ? 0 : 1);
}

TEST(ThreadRoom, SaysThatTheSystemRefusesThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(try_too_many(), ::testing::ExitedWithCode(0),
              "1000 threads.*actor_threads");
}

TEST(ThreadRoom, IsThereForAFew) {
  EXPECT_EQ(check_thread_room(8).text, "");
  EXPECT_EQ(check_thread_room(0).text, "");
}

} // namespace
} // namespace kvtide
