// SPDX-License-Identifier: Apache-2.0

/// @file
/// A worker with its device, while the driver says nothing or the GPU is lost.

#include "actors/alive.hpp"
#include "actors/device.hpp"
#include "actors/gpu_worker.hpp"
#include "tests/actors/silent_engine.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/breach_ear.hpp"
#include "tests/support/listen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

struct fake_state {
  static inline const char* name = "fake";
};

/// What scheduler and rank side heard, in the order of arrival.
struct heard_log {
  std::vector<std::string> reports;
  std::vector<rank_failed> failures;
  std::size_t unregistered = 0;
};

scheduler_worker_port::behavior_type
fake_scheduler(scheduler_worker_port::stateful_pointer<fake_state>,
               heard_log* log) {
  return test::listen<scheduler_worker_port>([=](const msg::transfers_done& x) {
    static constexpr const char* names[]
      = {"done", "failed", "late", "drained"};
    for (const auto& one : x.reports)
      log->reports.push_back(std::to_string(one.job) + " "
                             + names[static_cast<int>(one.status)]);
  });
}

rank_side_actor::behavior_type
fake_rank_side(rank_side_actor::stateful_pointer<fake_state>, heard_log* log) {
  return test::listen<rank_side_actor>(
    [=](const rank_failed& x) { log->failures.push_back(x); },
    [=](const kv_unregistered&) { ++log->unregistered; });
}

constexpr std::uint64_t blocks = 4;
constexpr std::uint64_t block_bytes = 64;

class SilentDevice : public test::actor_fixture {
protected:
  SilentDevice() {
    device_options.host_bytes = 4 * block_bytes;
    device_options.compute = compute;
    device_options.engine = [gpu = gpu](const gpu::wake_function&) {
      return std::make_unique<test::silent_engine>(gpu);
    };
    device_options.on_breach = ear.listener();
    worker_options.job_deadline = 1s;
    worker_options.on_breach = ear.listener();
    worker_options.incarnation = 1;
  }

  void start() {
    device = world.spawn_device(device_options);
    worker = world.spawn(gpu_worker, worker_options, device,
                         world.spawn(fake_scheduler, &log),
                         world.spawn(fake_rank_side, &log));
    auto memory = kv_memory{};
    memory.tensors.push_back({bytes.data(), bytes.size(), memory_kind::host,
                              blocks, block_bytes, block_bytes});
    memory.references.push_back({0, 0, 0, 0, block_bytes});
    tell(msg::register_kv{memory});
  }

  template <class Message>
  void tell(Message message) {
    world.send(worker, std::move(message));
    world.run();
  }

  /// A step that loads into one block per job.
  void load(step_id step, const std::vector<job_id>& ids) {
    auto plan = msg::begin_step{};
    plan.step = step;
    for (const auto id : ids)
      plan.loads.push_back(
        {id, job_kind::load, 0, std::vector<job_row>{{{}, 0, 0, {1}}}});
    tell(std::move(plan));
    tell(msg::end_step{step, {}});
    ASSERT_THAT(gpu->running, ::testing::Contains(ids.back()));
  }

  std::vector<std::string> take_reports() {
    return std::exchange(log.reports, {});
  }

  test::breach_ear ear;
  heard_log log;
  std::vector<std::byte> bytes = std::vector<std::byte>(blocks * block_bytes);
  std::shared_ptr<test::silent_gpu> gpu = std::make_shared<test::silent_gpu>();
  std::shared_ptr<compute_side> compute = std::make_shared<compute_side>();
  device_config device_options;
  gpu_worker_config worker_options;
  device_actor device;
  gpu_worker_actor worker;
};

TEST_F(SilentDevice, G1JobThatEndedInSilenceIsDoneAndNotLate) {
  start();
  load(1, {1, 2});
  gpu->end(1);
  world.advance(999ms);
  EXPECT_THAT(take_reports(), IsEmpty()) << "nobody was woken";
  for (auto i = 0; i < 3; ++i)
    world.advance(100ms);
  EXPECT_THAT(take_reports(), ElementsAre("1 done", "2 late"));
  gpu->end(2);
  world.send(device, msg::device_woke{});
  world.run();
  EXPECT_THAT(take_reports(), ElementsAre("2 drained"));
}

TEST_F(SilentDevice, G1MemoryIsGivenBackThoughNobodyWasWoken) {
  start();
  load(1, {1});
  tell(msg::unregister_kv{});
  EXPECT_EQ(log.unregistered, 0u);
  gpu->end(1);
  for (auto i = 0; i < 12; ++i)
    world.advance(100ms);
  EXPECT_THAT(take_reports(), ElementsAre("1 done"));
  EXPECT_EQ(log.unregistered, 1u);
}

TEST_F(SilentDevice, G7LostGpuFailsItsJobsAndEndsItsRank) {
  start();
  load(1, {1, 2});
  gpu->end(1);
  gpu->lose({ec::device_failure, "an illegal memory access"});
  world.send(device, msg::device_woke{});
  world.run();
  EXPECT_THAT(take_reports(), ElementsAre("1 done", "2 failed"));
  EXPECT_FALSE(is_alive(device));
  EXPECT_FALSE(is_alive(worker)) << "the scheduler sees the rank lost";
  ASSERT_EQ(log.failures.size(), 1u);
  EXPECT_EQ(log.failures[0].reason.code, ec::device_failure);
  EXPECT_THAT(log.failures[0].reason.text,
              HasSubstr("an illegal memory access"));
  EXPECT_EQ(compute->lost().code, ec::device_failure);
  EXPECT_EQ(compute->lost().text, log.failures[0].reason.text);
}

// What the worker hands over in the same moment has an end too.
TEST_F(SilentDevice, G7JobsThatALostGpuNeverSawFail) {
  start();
  load(1, {1});
  gpu->lose({ec::device_failure, "an illegal memory access"});
  world.send(device, msg::device_woke{});
  auto plan = msg::begin_step{};
  plan.step = 2;
  plan.loads.push_back(
    {2, job_kind::load, 0, std::vector<job_row>{{{}, 0, 0, {2}}}});
  tell(std::move(plan));
  EXPECT_THAT(take_reports(), ElementsAre("1 failed", "2 failed"));
}

TEST_F(SilentDevice, G7GpuThatIsLostInSilenceIsNoticedAtADeadline) {
  start();
  load(1, {1});
  gpu->lose({ec::device_failure, "the GPU fell off the bus"});
  for (auto i = 0; i < 12; ++i)
    world.advance(100ms);
  EXPECT_THAT(take_reports(), ElementsAre("1 failed"));
  EXPECT_FALSE(is_alive(worker));
}

TEST_F(SilentDevice, RefusesAGpuThatIsNotThere) {
  device_options.kind = device_kind::cuda;
  device = world.spawn_device(device_options);
  auto answers = std::vector<msg::memory_registered>{};
  const auto asking = world.spawn(
    +[](gpu_worker_actor::stateful_pointer<fake_state>,
        std::vector<msg::memory_registered>* out) {
      return test::listen<gpu_worker_actor>(
        [=](const msg::memory_registered& x) { out->push_back(x); });
    },
    &answers);
  auto memory = kv_memory{};
  memory.device = 1'000; // More than any machine has.
  memory.tensors.push_back({bytes.data(), bytes.size(), memory_kind::device,
                            blocks, block_bytes, block_bytes});
  memory.references.push_back({0, 0, 0, 0, block_bytes});
  world.send_as(asking, device, msg::register_memory{memory});
  world.run();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].reason.code, ec::unsupported);
  EXPECT_NE(answers[0].reason.text, "");
  EXPECT_THAT(answers[0].notes, IsEmpty());
  EXPECT_EQ(compute->record(0).failure().code, ec::out_of_order);
}

} // namespace
} // namespace kvtide
