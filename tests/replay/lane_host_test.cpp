// SPDX-License-Identifier: Apache-2.0

#include "kvtide/blocking.hpp"

#include "examples/replay/remote_lane.hpp"
#include "examples/replay/runtime_options.hpp"
#include "examples/worker/lane_host.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kvtide::worker_program {
namespace {

using namespace replay;
using namespace std::chrono_literals;

using ::testing::HasSubstr;

// A rank whose engine is this test and speaks through a socket. The runtime is
// in this process as well, which the rank does not notice.
class LaneHost : public ::testing::Test {
protected:
  static constexpr std::uint64_t life = 0x123456789abcdef0u;

  LaneHost() {
    opts.shape.device_blocks = 64;
    opts.host_bytes = 1u << 20;
    opts.clock = device_kind::host;
    opts.copy_latency_us = 0;
    opts.copy_bandwidth = 0;
    path = ::testing::TempDir() + "kvtide-lane-" + std::to_string(getpid());
  }

  void SetUp() override {
    auto started = runtime::start(make_runtime_options(opts));
    ASSERT_TRUE(started.ok()) << started.failure().text;
    rt.emplace(std::move(started).value());
    host = std::make_unique<lane_host>(opts, 0, rt->local_rank(0), path, life,
                                       stop, [this](const std::string& text) {
                                         const auto lock
                                           = std::lock_guard{guard};
                                         said.push_back(text);
                                       });
    thread = std::thread{[this] { host->run(); }};
  }

  void TearDown() override {
    stop = true;
    if (thread.joinable())
      thread.join();
    rt.reset();
  }

  // Connects and waits for the greeting.
  std::unique_ptr<remote_lane> dial(const replay_options& as) {
    auto lane = remote_lane::dial(as, 0, path);
    EXPECT_NE(lane, nullptr);
    for (auto round = 0; lane && round < 1'000; ++round) {
      if (const auto greeting = lane->take_greeting()) {
        EXPECT_EQ(*greeting, life);
        return lane;
      }
      std::this_thread::sleep_for(10ms);
    }
    ADD_FAILURE() << "nobody said hello";
    return lane;
  }

  // Plans a step that is about nothing.
  step_plan plan(step_id step) {
    auto call = step_call{};
    call.step = step;
    auto answer = blocking_runtime{*rt}.step(std::move(call), 10s);
    EXPECT_TRUE(answer.ok()) << answer.failure().text;
    return answer.ok() ? answer.value() : step_plan{};
  }

  void go_through(lane& uut, step_id step, const kv_work& work) {
    const auto what = plan(step);
    uut.begin_step(step, what.bytes);
    EXPECT_FALSE(uut.await_ready(step).waits);
    uut.compute(work);
    uut.end_step(step, 0);
    uut.settle();
    uut.await_settled();
  }

  static kv_work write_and_check(std::uint64_t written, std::uint64_t wanted) {
    auto res = kv_work{};
    const auto part = block_part{0, 0, 3, 0, 16};
    res.writes.push_back({part, written});
    res.checks.push_back({{part, wanted}, 7, check_reason::loaded, 1});
    return res;
  }

  // What the host answers to bytes that no engine would say.
  nlohmann::json answer_to(const nlohmann::json& message) {
    auto stream = frame_stream{std::move(*connect_to(path))};
    const auto until = std::chrono::steady_clock::now() + 10s;
    stream.send(message, until);
    auto answer = stream.receive(until);
    return answer ? *answer : nlohmann::json{};
  }

  replay_options opts;
  std::string path;
  std::atomic<bool> stop{false};
  std::mutex guard;
  std::vector<std::string> said;
  std::unique_ptr<lane_host> host; // Has memory that copies touch.
  std::optional<runtime> rt;
  std::thread thread;
};

// Several that are silent are to be waited for at the same time.
TEST_F(LaneHost, IsAskedToSettleWithoutWaiting) {
  const auto elsewhere = path + "2";
  const auto listener = listen_at(elsewhere);
  auto uut = remote_lane::dial(opts, 0, elsewhere);
  ASSERT_NE(uut, nullptr);
  uut->set_limit(1h);
  uut->compute(write_and_check(5, 5));
  uut->settle();
  auto silent
    = frame_stream{unique_fd{accept4(listener.get(), nullptr, nullptr, 0)}};
  const auto until = std::chrono::steady_clock::now() + 10s;
  for (const auto* word : {"hello", "compute", "settle"}) {
    const auto message = silent.receive(until);
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(word_of(*message), word);
  }
}

TEST_F(LaneHost, DoesWhatTheEngineSays) {
  auto uut = dial(opts);
  uut->register_kv();
  const auto known = uut->await_registered();
  EXPECT_GT(known.slots, 0u);
  EXPECT_GT(known.slot_bytes, 0u);
  go_through(*uut, 1, write_and_check(5, 5));
  go_through(*uut, 2, write_and_check(5, 6));
  const auto found = uut->take_tally();
  EXPECT_EQ(found.compared_bytes[0], 2 * opts.shape.block_bytes());
  EXPECT_EQ(found.mismatches[0], 4u); // Each plane of each layer.
  ASSERT_TRUE(found.first.has_value());
  EXPECT_EQ(found.first->request, 7u);
  EXPECT_EQ(uut->get_copies().bytes, 0u);
  uut->unregister_kv();
  uut->await_unregistered();
}

TEST_F(LaneHost, KeepsTheMemoryForTheNextConnection) {
  auto uut = dial(opts);
  uut->register_kv();
  static_cast<void>(uut->await_registered());
  go_through(*uut, 1, write_and_check(5, 5));
  // It leaves in the middle of a step.
  uut->begin_step(2, plan(2).bytes);
  static_cast<void>(uut->await_ready(2));
  uut.reset();
  uut = dial(opts);
  // Steps that it missed are ended before the one that it asks for.
  static_cast<void>(plan(3));
  go_through(*uut, 4, {});
  uut->register_kv();
  EXPECT_GT(uut->await_registered().slots, 0u);
  auto work = write_and_check(5, 5);
  work.writes.clear();
  go_through(*uut, 5, work);
  EXPECT_EQ(uut->take_tally().all_mismatches(), 0u);
}

TEST_F(LaneHost, TakesTheMemoryBackWhenTheEngineLeavesWhileItRegisters) {
  for (auto round = 0; round < 5; ++round) {
    auto uut = dial(opts);
    uut->register_kv();
  }
  auto uut = dial(opts);
  uut->register_kv();
  EXPECT_GT(uut->await_registered().slots, 0u);
}

TEST_F(LaneHost, RefusesAnEngineWithAnotherModel) {
  auto other = opts;
  other.shape.head_size = 8;
  auto uut = remote_lane::dial(other, 0, path);
  ASSERT_NE(uut, nullptr);
  try {
    for (auto round = 0; round < 1'000; ++round) {
      static_cast<void>(uut->take_greeting());
      std::this_thread::sleep_for(10ms);
    }
    ADD_FAILURE() << "was not refused";
  } catch (const bad_configuration& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("--head-size"));
  }
  EXPECT_NE(dial(opts), nullptr);
}

TEST_F(LaneHost, RefusesWhatIsNoCommandAndGoesOn) {
  EXPECT_EQ(word_of(answer_to({{"say", "begin"}, {"step", 1u}})), "error");
  EXPECT_EQ(word_of(answer_to(nlohmann::json::array({1, 2}))), "error");
  {
    auto stream = frame_stream{std::move(*connect_to(path))};
    const auto until = std::chrono::steady_clock::now() + 10s;
    stream.send(hello_of(opts, 0), until);
    EXPECT_EQ(word_of(*stream.receive(until)), "hello");
    auto work = to_message(write_and_check(1, 1));
    work["writes"][2] = 1'000'000u; // A block far behind the memory.
    stream.send(work, until);
    EXPECT_THROW(static_cast<void>(stream.receive(until)), stream_error);
  }
  EXPECT_NE(dial(opts), nullptr);
  const auto lock = std::lock_guard{guard};
  EXPECT_GE(said.size(), 3u);
}

TEST_F(LaneHost, EndsWhileAnEngineIsThere) {
  auto uut = dial(opts);
  uut->register_kv();
  static_cast<void>(uut->await_registered());
  uut->begin_step(1, {}); // Its plan never comes.
  stop = true;
  thread.join();
  EXPECT_THROW(static_cast<void>(uut->await_ready(1)), lane_lost);
}

TEST_F(LaneHost, IsLostForAnEngineThatWaitsTooLong) {
  auto uut = dial(opts);
  uut->register_kv();
  static_cast<void>(uut->await_registered());
  uut->set_limit(50ms);
  uut->begin_step(1, {});
  EXPECT_THROW(static_cast<void>(uut->await_ready(1)), lane_lost);
}

} // namespace
} // namespace kvtide::worker_program
