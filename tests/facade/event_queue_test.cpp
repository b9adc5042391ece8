// SPDX-License-Identifier: Apache-2.0

#include "actors/event_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kvtide {
namespace {

using namespace std::chrono_literals;

event_queue<int> make_queue() {
  auto ready = ready_fd::create();
  EXPECT_TRUE(ready.ok());
  return event_queue<int>{std::move(ready).value()};
}

bool readable(int fd) {
  auto what = pollfd{fd, POLLIN, 0};
  return ::poll(&what, 1, 0) == 1;
}

/// Lets a test do something in the moment in which the other side is woken,
/// before it can see that.
class interrupted_fd {
public:
  interrupted_fd(ready_fd fd, std::function<void()> meanwhile)
    : fd_(std::move(fd)), meanwhile_(std::move(meanwhile)) {
    // nop
  }

  void signal() const {
    meanwhile_();
    fd_.signal();
  }

  [[nodiscard]] auto clear() const {
    return fd_.clear();
  }

  [[nodiscard]] bool wait(std::chrono::milliseconds timeout) const {
    return fd_.wait(timeout);
  }

  [[nodiscard]] int get() const {
    return fd_.get();
  }

private:
  ready_fd fd_;
  std::function<void()> meanwhile_;
};

/// A thread of this process waits in the kernel.
bool sleeps(pid_t thread) {
  auto file
    = std::ifstream{"/proc/self/task/" + std::to_string(thread) + "/stat"};
  auto line = std::string{};
  std::getline(file, line);
  // "17 (name) S ..."
  const auto name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
}

TEST(EventQueue, IsReadableExactlyWhileItHoldsSomething) {
  auto uut = make_queue();
  EXPECT_FALSE(readable(uut.ready().get()));
  EXPECT_FALSE(uut.ready().wait(0ms));
  uut.push(1);
  uut.push(2);
  EXPECT_TRUE(readable(uut.ready().get()));
  EXPECT_TRUE(uut.ready().wait(0ms));
  EXPECT_EQ(uut.poll(), (std::vector<int>{1, 2}));
  EXPECT_FALSE(readable(uut.ready().get()));
  EXPECT_TRUE(uut.poll().empty());
}

TEST(EventQueue, LosesNoWakeUpBetweenThreads) {
  constexpr auto count = 20'000;
  auto uut = make_queue();
  auto writer = std::thread{[&uut] {
    for (auto i = 0; i < count; ++i)
      uut.push(i);
  }};
  auto got = std::vector<int>{};
  while (got.size() < count) {
    ASSERT_TRUE(uut.ready().wait(60s)) << "an event was pushed silently";
    for (auto x : uut.poll())
      got.push_back(x);
  }
  writer.join();
  for (auto i = 0; i < count; ++i)
    ASSERT_EQ(got[static_cast<std::size_t>(i)], i);
}

// Whoever is woken polls at once; if the lock were held then, it would wait for
// a thread that has just lost its core to it.
TEST(EventQueue, WakesTheOtherSideWithoutItsLock) {
  auto got = std::vector<int>{};
  auto poll = std::function<void()>{};
  auto uut = event_queue<int, interrupted_fd>{
    {ready_fd::create().value(), [&poll] { poll(); }}};
  poll = [&] { std::thread{[&] { got = uut.poll(); }}.join(); };
  uut.push(1);
  EXPECT_EQ(got, std::vector<int>{1});
}

TEST(EventQueue, WaitsOnBehindASignalThatAPollHasOvertaken) {
  auto got = std::vector<int>{};
  auto poll = std::function<void()>{};
  auto uut = event_queue<int, interrupted_fd>{
    {ready_fd::create().value(), [&poll] { poll(); }}};
  poll = [&] { got = uut.poll(); };
  uut.push(1);
  EXPECT_EQ(got, std::vector<int>{1});
  EXPECT_TRUE(readable(uut.ready().get())) << "the signal came behind the poll";
  EXPECT_FALSE(uut.wait(0ms)) << "there is nothing to poll";
  EXPECT_FALSE(readable(uut.ready().get()));
  uut.push(2);
  EXPECT_TRUE(uut.poll().empty());
  EXPECT_FALSE(readable(uut.ready().get()));
  poll = [] {};
  uut.push(3);
  EXPECT_TRUE(uut.wait(0ms));
  EXPECT_EQ(uut.poll(), std::vector<int>{3});
  EXPECT_FALSE(readable(uut.ready().get()));
}

TEST(ReadyFd, WaitsForeverIfAsked) {
  auto uut = make_queue();
  auto waiter = std::atomic<pid_t>{0};
  auto returned = std::atomic<bool>{false};
  auto thread = std::thread{[&] {
    waiter = ::gettid();
    EXPECT_TRUE(uut.ready().wait(std::chrono::milliseconds::max()));
    returned = true;
  }};
  while (!returned && !sleeps(waiter))
    std::this_thread::yield();
  EXPECT_FALSE(returned);
  uut.push(1);
  thread.join();
  EXPECT_TRUE(uut.ready().wait(std::chrono::milliseconds::min()));
}

TEST(ReadyFd, MovesItsDescriptor) {
  auto first = ready_fd::create();
  ASSERT_TRUE(first.ok());
  auto second = std::move(first).value();
  const auto fd = second.get();
  auto third = std::move(second);
  EXPECT_EQ(third.get(), fd);
  third.signal();
  EXPECT_TRUE(readable(fd));
  third.clear();
  EXPECT_FALSE(readable(fd));
}

} // namespace
} // namespace kvtide
