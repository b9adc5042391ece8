// SPDX-License-Identifier: Apache-2.0

#include "actors/device.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/breach_ear.hpp"
#include "tests/support/listen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
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

// -- neighbours ---------------------------------------------------------------

struct worker_log {
  /// All answers in the order of arrival.
  std::vector<std::string> heard;
  std::vector<msg::memory_registered> registered;
  std::vector<msg::copy_done> done;
  std::uint64_t copied_bytes = 0;
  std::vector<msg::fence_made> fences;
  std::vector<msg::device_ticked> ticks;
};

struct fake_state {
  static inline const char* name = "fake";
};

gpu_worker_actor::behavior_type
fake_worker(gpu_worker_actor::stateful_pointer<fake_state>, worker_log* log) {
  return test::listen<gpu_worker_actor>(
    [=](const msg::memory_registered& x) {
      log->heard.emplace_back("registered");
      log->registered.push_back(x);
    },
    [=](const msg::memory_unregistered&) {
      log->heard.emplace_back("unregistered");
    },
    [=](const msg::copies_done& x) {
      for (const auto& one : x.jobs) {
        log->heard.push_back((one.ok ? "done " : "failed ")
                             + std::to_string(one.job));
        log->done.push_back(one);
      }
      log->copied_bytes += x.bytes;
    },
    [=](const msg::fence_made& x) {
      log->heard.push_back("fence " + std::to_string(x.step));
      log->fences.push_back(x);
    },
    [=](const msg::device_ticked& x) {
      log->heard.emplace_back("ticked");
      log->ticks.push_back(x);
    },
    [=](const msg::device_breach& x) {
      log->heard.push_back("breach of " + core::to_string(x.rule));
    });
}

// -- short forms --------------------------------------------------------------

constexpr std::uint32_t blocks = 16;
constexpr std::uint64_t block_bytes = 256;

/// GPU memory of one rank, and its worker and device.
class rank_memory {
public:
  rank_memory() : bytes_(blocks * block_bytes) {
    memory.tensors.push_back({bytes_.data(), bytes_.size(), memory_kind::host,
                              blocks, block_bytes, block_bytes});
    memory.references.push_back({0, 0, 0, 0, block_bytes});
  }

  void fill(block_id block, char with) {
    const auto first
      = bytes_.begin() + static_cast<std::ptrdiff_t>(block * block_bytes);
    std::fill_n(first, block_bytes, with);
  }

  /// The byte of which a block is full, or zero.
  [[nodiscard]] char at(block_id block) const {
    const auto first
      = bytes_.begin() + static_cast<std::ptrdiff_t>(block * block_bytes);
    const auto equal = std::all_of(first, first + block_bytes,
                                   [first](char x) { return x == *first; });
    return equal ? *first : '\0';
  }

  kv_memory memory;

private:
  std::vector<char> bytes_;
};

/// One row of two blocks.
job one_row(job_kind kind, job_id id, slot_id slot, block_id first,
            block_id second) {
  return {id, kind, 0, std::vector<job_row>{{{}, slot, 0, {first, second}}}};
}

job store(job_id id, slot_id slot, block_id first, block_id second) {
  return one_row(job_kind::store, id, slot, first, second);
}

job load(job_id id, slot_id slot, block_id first, block_id second) {
  return one_row(job_kind::load, id, slot, first, second);
}

class Device : public test::actor_fixture {
protected:
  Device() {
    config.kind = device_kind::host_virtual;
    config.blocks_per_chunk = 2;
    config.host_bytes = 4 * 2 * block_bytes;
    config.latency = 100ns;
    config.on_breach = ear.listener();
  }

  void start() {
    worker = world.spawn(fake_worker, &log);
    uut = world.spawn_device(config);
    ask(msg::register_memory{gpu.memory});
    world.run();
    log.heard.clear();
  }

  /// The next rank of the process: from here on it is spoken to.
  /// @returns the device of the one before
  device_actor start_another(const rank_memory& other) {
    auto before = std::exchange(uut, world.spawn_device(config));
    worker = world.spawn(fake_worker, &log);
    ask(msg::register_memory{other.memory});
    return before;
  }

  template <class Message>
  void ask(Message message) {
    world.send_as(worker, uut, std::move(message));
  }

  /// Moves simulated time and waits for the answer.
  void tick(nanoseconds_t now) {
    const auto before = log.ticks.size();
    ask(msg::device_tick{now});
    ASSERT_TRUE(
      world.run_until([&] { return log.ticks.size() == before + 1; }));
  }

  std::vector<std::string> take_heard() {
    return std::exchange(log.heard, {});
  }

  rank_memory gpu;
  worker_log log;
  test::breach_ear ear;
  device_config config;
  gpu_worker_actor worker;
  device_actor uut;
};

// -- registration -------------------------------------------------------------

TEST_F(Device, SaysHowManyWholeSlotsFit) {
  config.host_bytes = 4 * 2 * block_bytes + 1;
  start();
  ASSERT_EQ(log.registered.size(), 1u);
  EXPECT_EQ(log.registered[0].reason.code, ec::none);
  EXPECT_EQ(log.registered[0].slots, 4u);
  EXPECT_EQ(log.registered[0].slot_bytes, 2 * block_bytes);
}

TEST_F(Device, RefusesMemoryThatMakesNoSense) {
  gpu.memory.references[0].tensor = 5;
  start();
  ASSERT_EQ(log.registered.size(), 1u);
  EXPECT_EQ(log.registered[0].reason.code, ec::invalid_argument);
  EXPECT_NE(log.registered[0].reason.text, "");
}

TEST_F(Device, RefusesAPoolSmallerThanAChunkAndTakesNone) {
  config.host_bytes = 2 * block_bytes - 1;
  start();
  EXPECT_EQ(log.registered[0].reason.code, ec::invalid_options);
  config.host_bytes = 0;
  start();
  EXPECT_EQ(log.registered[1].reason.code, ec::none);
  EXPECT_EQ(log.registered[1].slots, 0u);
}

TEST_F(Device, RefusesToRegisterTwice) {
  start();
  ask(msg::register_memory{gpu.memory});
  world.run();
  EXPECT_EQ(log.registered.back().reason.code, ec::out_of_order);
}

TEST_F(Device, KeepsThePoolsContentWhileARankIsAway) {
  start();
  gpu.fill(1, 'a');
  gpu.fill(2, 'b');
  ask(msg::submit_jobs{{store(1, 3, 1, 2)}, {}, {}});
  tick(100);
  ask(msg::unregister_memory{});
  world.run();
  EXPECT_THAT(take_heard(), ElementsAre("done 1", "ticked", "unregistered"));
  ask(msg::submit_jobs{{store(2, 0, 1, 2)}, {}, {}});
  ask(msg::register_memory{gpu.memory});
  ask(msg::submit_jobs{{load(3, 3, 5, 6)}, {}, {}});
  tick(200);
  EXPECT_THAT(take_heard(),
              ElementsAre("failed 2", "registered", "done 3", "ticked"));
  EXPECT_EQ(gpu.at(5), 'a');
  EXPECT_EQ(gpu.at(6), 'b');
}

TEST_F(Device, RefusesMemoryWhoseChunksHaveAnotherForm) {
  start();
  ask(msg::unregister_memory{});
  gpu.memory.references[0].layer = 1;
  ask(msg::register_memory{gpu.memory});
  world.run();
  EXPECT_EQ(log.registered.back().reason.code, ec::invalid_argument);
}

TEST_F(Device, ReplicasOfOneProcessShareAPool) {
  config.shared_pool = std::make_shared<gpu::host_pool_memory>();
  gpu.memory.writers = 2;
  start();
  gpu.fill(1, 'x');
  gpu.fill(2, 'y');
  ask(msg::submit_jobs{{store(1, 0, 1, 2)}, {}, {}});
  tick(100);
  rank_memory other;
  other.memory.writers = 2;
  other.memory.writer = 1;
  const auto first = start_another(other);
  ask(msg::submit_jobs{{load(2, 0, 7, 8)}, {}, {}});
  tick(200);
  EXPECT_EQ(other.at(7), 'x');
  EXPECT_EQ(other.at(8), 'y');
}

/// S4: it reports stores without copying.
TEST_F(Device, AReplicaThatNeverWritesReadsWhatTheOthersStored) {
  config.shared_pool = std::make_shared<gpu::host_pool_memory>();
  gpu.memory.writers = 2;
  start();
  gpu.fill(1, 'x');
  ask(msg::submit_jobs{{store(1, 0, 1, no_block)}, {}, {}});
  tick(100);
  rank_memory other;
  other.memory.writers = 2;
  other.memory.writer = 2;
  const auto first = start_another(other);
  ask(msg::submit_jobs{{load(2, 0, 7, no_block)}, {}, {}});
  tick(200);
  EXPECT_EQ(other.at(7), 'x');
}

TEST_F(Device, RanksThatAreNoReplicasHavePoolsOfTheirOwn) {
  config.shared_pool = std::make_shared<gpu::host_pool_memory>();
  start();
  gpu.fill(1, 'x');
  ask(msg::submit_jobs{{store(1, 0, 1, no_block)}, {}, {}});
  tick(100);
  rank_memory other;
  other.fill(7, 'o');
  const auto first = start_another(other);
  ask(msg::submit_jobs{{load(2, 0, 7, no_block)}, {}, {}});
  tick(200);
  EXPECT_NE(other.at(7), 'x');
}

/// The scheduler goes by what lies in the pool of the first registration.
TEST_F(Device, KeepsToThePoolOfTheFirstRegistration) {
  config.shared_pool = std::make_shared<gpu::host_pool_memory>();
  for (const auto& [before, after] : {std::pair{1u, 2u}, std::pair{2u, 1u}}) {
    gpu.memory.writers = before;
    start();
    ask(msg::unregister_memory{});
    gpu.memory.writers = after;
    ask(msg::register_memory{gpu.memory});
    world.run();
    EXPECT_EQ(log.registered.back().reason.code, ec::invalid_argument);
    EXPECT_THAT(log.registered.back().reason.text,
                HasSubstr("kv_memory::writers was"));
    gpu.memory.writers = before;
    ask(msg::register_memory{gpu.memory});
    world.run();
    EXPECT_EQ(log.registered.back().reason.code, ec::none);
  }
}

TEST_F(Device, ChoosesNoPoolByARegistrationThatFailed) {
  config.shared_pool = std::make_shared<gpu::host_pool_memory>();
  rank_memory replica;
  replica.memory.writers = 2;
  const auto shape
    = gpu::make_geometry(replica.memory, 1, 2, gpu::memory_domain::host_only);
  auto other_form = replica.memory;
  other_form.references[0].layer = 1;
  auto wanted = gpu::host_pool_config{};
  wanted.host_bytes = config.host_bytes;
  ASSERT_TRUE(config.shared_pool->open(shape.value(), other_form, wanted));
  gpu.memory.writers = 2;
  start();
  EXPECT_EQ(log.registered.back().reason.code, ec::invalid_argument);
  gpu.memory.writers = 1;
  ask(msg::register_memory{gpu.memory});
  world.run();
  EXPECT_EQ(log.registered.back().reason.code, ec::none);
}

// -- copies -------------------------------------------------------------------

TEST_F(Device, AnnouncesInOrderOfTimeAndLeavesHolesAlone) {
  start();
  gpu.fill(1, 'a');
  gpu.fill(2, 'b');
  gpu.fill(6, 'z');
  ask(msg::submit_jobs{{store(1, 0, 1, 2), store(2, 1, 2, 1)}, {}, {}});
  ask(msg::submit_jobs{{load(3, 0, 5, no_block)}, {}, {}});
  tick(99);
  EXPECT_THAT(take_heard(), ElementsAre("ticked"));
  EXPECT_EQ(log.ticks.back().next_due, 100);
  // Job 3 reads what job 1 writes (S8), job 2 is behind job 1 on its stream.
  tick(200);
  EXPECT_THAT(take_heard(),
              ElementsAre("done 1", "done 2", "done 3", "ticked"));
  EXPECT_EQ(gpu.at(5), 'a');
  EXPECT_EQ(gpu.at(6), 'z');
  EXPECT_EQ(log.ticks.back().next_due, never);
}

TEST_F(Device, GEO_04_fails_a_job_outside_the_memory_and_goes_on_with_others) {
  start();
  const auto two_rows
    = job{4, job_kind::store, 0,
          std::vector<job_row>{{{}, 1, 0, {1, 2}}, {{}, 4, 1, {1, 2}}}};
  const auto other_group = job{
    5, job_kind::store, 0, std::vector<job_row>{{{{}, 1, 0}, 2, 0, {1, 2}}}};
  ask(msg::submit_jobs{{store(1, 0, 1, 2), store(2, 4, 1, 2),
                        store(3, 1, 1, blocks), two_rows, other_group},
                       {},
                       {}});
  world.run();
  ASSERT_THAT(take_heard(),
              ElementsAre("failed 2", "failed 3", "failed 4", "failed 5"));
  EXPECT_THAT(log.done[0].text, HasSubstr("4"));
  EXPECT_THAT(log.done[1].text, HasSubstr(std::to_string(blocks)));
  for (const auto& x : log.done)
    EXPECT_EQ(x.first_failed_row, 0u);
  tick(1'000);
  EXPECT_THAT(take_heard(), ElementsAre("done 1", "ticked"));
}

TEST_F(Device, PassesAFailedCopyOn) {
  config.fault = [](job_id id, job_kind) {
    return gpu::copy_fault{
      id == 2 ? gpu::fault_kind::fail : gpu::fault_kind::none, 1, 0};
  };
  start();
  const auto two_rows
    = job{2, job_kind::store, 0,
          std::vector<job_row>{{{}, 0, 0, {1, 2}}, {{}, 1, 1, {1, 2}}}};
  ask(msg::submit_jobs{{store(1, 2, 1, 2), two_rows}, {}, {}});
  tick(1'000);
  EXPECT_THAT(take_heard(), ElementsAre("done 1", "failed 2", "ticked"));
  EXPECT_EQ(log.done[1].first_failed_row, 1u);
  EXPECT_NE(log.done[1].text, "");
  // Two blocks of job 1, and the first row of job 2.
  EXPECT_EQ(log.copied_bytes, 4 * block_bytes);
}

TEST_F(Device, ReportsAJobThatWasHandedOverTwiceOnce) {
  ear.expect();
  start();
  ask(msg::submit_jobs{{store(1, 0, 1, 2), store(1, 0, 1, 2)}, {}, {}});
  tick(1'000);
  EXPECT_THAT(take_heard(), ElementsAre("breach of S4", "done 1", "ticked"));
}

TEST_F(Device, FailsJobsWithoutMemory) {
  worker = world.spawn(fake_worker, &log);
  uut = world.spawn_device(config);
  ask(msg::submit_jobs{{store(1, 0, 1, 2)}, {}, {}});
  ask(msg::make_fence{1, {1}});
  ask(msg::device_tick{10});
  world.run();
  EXPECT_THAT(take_heard(), ElementsAre("failed 1", "fence 1", "ticked"));
  EXPECT_EQ(log.ticks[0].next_due, never);
}

TEST_F(Device, S6CopyStartsAfterTheComputeEvents) {
  start();
  ask(msg::submit_jobs{{store(1, 0, 1, 2)}, {}, {40, 700}});
  tick(699);
  EXPECT_THAT(take_heard(), ElementsAre("ticked"));
  // The compute that ends at 700 writes before time gets there.
  gpu.fill(1, 'n');
  gpu.fill(2, 'n');
  tick(800);
  ask(msg::submit_jobs{{load(2, 0, 3, 4)}, {}, {}});
  tick(900);
  EXPECT_THAT(take_heard(),
              ElementsAre("done 1", "ticked", "done 2", "ticked"));
  EXPECT_EQ(gpu.at(3), 'n');
  EXPECT_EQ(gpu.at(4), 'n');
}

TEST_F(Device, S5LoadStartsAfterTheJobsItWaitsFor) {
  start();
  ask(msg::submit_jobs{{store(1, 0, 1, 2)}, {}, {500}});
  ask(msg::submit_jobs{{load(2, 1, 1, 2)}, {1, 77}, {}});
  tick(599);
  EXPECT_THAT(take_heard(), ElementsAre("ticked"));
  tick(699);
  EXPECT_THAT(take_heard(), ElementsAre("done 1", "ticked"));
  tick(700);
  EXPECT_THAT(take_heard(), ElementsAre("done 2", "ticked"));
}

// -- fences -------------------------------------------------------------------

TEST_F(Device, S5FenceNamesTheMomentAtWhichItsJobsHaveEnded) {
  start();
  ask(msg::submit_jobs{{store(1, 0, 1, 2)}, {}, {500}});
  ask(msg::make_fence{4, {1, 0}});
  ask(msg::make_fence{5, {0}});
  world.run();
  ASSERT_EQ(log.fences.size(), 2u);
  EXPECT_EQ(log.fences[0].step, 4u);
  EXPECT_EQ(log.fences[0].wait_for.kind, fence::kind_t::event);
  EXPECT_EQ(log.fences[0].wait_for.handle, 600u);
  EXPECT_EQ(log.fences[1].wait_for.kind, fence::kind_t::none);
}

// -- simulated time -----------------------------------------------------------

TEST_F(Device, KeepsRequestsInOrderWhileTimeMoves) {
  // Slow enough that the threads are mostly still copying.
  for (auto round = 0; round < 20; ++round) {
    start();
    ask(msg::submit_jobs{
      {store(1, 0, 1, 2), store(2, 1, 3, 4), store(3, 2, 5, 6)}, {}, {}});
    ask(msg::device_tick{150});
    ask(msg::submit_jobs{{store(4, 3, 1, 2)}, {}, {}});
    ask(msg::make_fence{1, {2}});
    ask(msg::device_tick{200});
    ask(msg::unregister_memory{});
    ask(msg::device_tick{1'000});
    ASSERT_TRUE(world.run_until([&] {
      return !log.heard.empty() && log.heard.back() == "unregistered";
    }));
    EXPECT_THAT(take_heard(),
                ElementsAre("done 1", "ticked", "fence 1", "done 2", "ticked",
                            "done 3", "done 4", "ticked", "unregistered"));
    EXPECT_EQ(log.fences.back().wait_for.handle, 200u);
  }
}

TEST_F(Device, TimeGoesOnWhereItWasAfterANewRegistration) {
  start();
  tick(5'000);
  ask(msg::unregister_memory{});
  ask(msg::register_memory{gpu.memory});
  ask(msg::submit_jobs{{store(1, 0, 1, 2)}, {}, {}});
  ask(msg::make_fence{1, {1}});
  world.run();
  ASSERT_EQ(log.fences.size(), 1u);
  EXPECT_EQ(log.fences[0].wait_for.handle, 5'100u);
}

// -- unregistering ------------------------------------------------------------

TEST_F(Device, AnswersUnregisterWhenNoJobIsInFlight) {
  start();
  ask(msg::submit_jobs{{store(1, 0, 1, 2)}, {}, {}});
  ask(msg::unregister_memory{});
  ask(msg::submit_jobs{{store(2, 0, 1, 2)}, {}, {}});
  world.run();
  EXPECT_THAT(take_heard(), ElementsAre("failed 2"));
  ask(msg::device_tick{100});
  ASSERT_TRUE(world.run_until([&] { return !log.ticks.empty(); }));
  world.run();
  EXPECT_THAT(take_heard(), ElementsAre("done 1", "ticked", "unregistered"));
  ask(msg::unregister_memory{});
  world.run();
  EXPECT_THAT(take_heard(), ElementsAre("unregistered"));
}

TEST_F(Device, QuitsWhenItsWorkerIsGone) {
  start();
  ask(msg::submit_jobs{{store(1, 0, 1, 2)}, {}, {}});
  world.run();
  world.kill(worker);
  const auto other = world.spawn(fake_worker, &log);
  world.send_as(other, uut, msg::device_tick{100});
  world.run();
  EXPECT_THAT(log.ticks, IsEmpty());
}

// -- the real clock -----------------------------------------------------------

TEST_F(Device, S5HostFenceIsOverWhenItsJobHasEnded) {
  config.kind = device_kind::host;
  config.latency = 0ns;
  config.events = std::make_shared<gpu::host_event_table>();
  const auto compute = config.events->create();
  ASSERT_TRUE(compute);
  start();
  gpu.fill(1, 'p');
  gpu.fill(2, 'q');
  ask(msg::submit_jobs{{store(1, 0, 1, 2)}, {}, {compute.value()}});
  ask(msg::make_fence{1, {1}});
  ask(msg::submit_jobs{{load(2, 0, 3, 4)}, {1}, {}});
  world.run();
  EXPECT_THAT(take_heard(), IsEmpty());
  config.events->complete(compute.value());
  ASSERT_TRUE(world.run_until(
    [&] { return log.done.size() == 2 && log.fences.size() == 1; }));
  EXPECT_EQ(log.heard.front(), "done 1");
  EXPECT_EQ(log.fences[0].wait_for.kind, fence::kind_t::none);
  EXPECT_EQ(gpu.at(3), 'p');
  EXPECT_EQ(gpu.at(4), 'q');
  // Simulated time means nothing here.
  tick(10);
  EXPECT_EQ(log.ticks.back().next_due, never);
}

} // namespace
} // namespace kvtide
