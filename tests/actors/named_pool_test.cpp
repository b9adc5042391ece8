// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a rank says of a host pool that an earlier process has left.

#include "kvtide/gpu.hpp"

#include "actors/device.hpp"
#include "actors/gpu_worker.hpp"
#include "core/wide_digest.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/listen.hpp"

#include <caf/actor_cast.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <unistd.h>
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

/// What somebody heard, in order.
using texts = std::vector<std::string>;

chunk_key key_of(std::uint8_t number) {
  return {{&number, 1}, 0, 5};
}

// -- the device ---------------------------------------------------------------

constexpr std::uint32_t blocks = 16;
constexpr std::uint64_t block_bytes = 256;

struct worker_log {
  texts heard;
  std::vector<msg::memory_registered> registered;
};

/// What the entry of a slot in the pool's file begins with.
bool is_valid(const std::string& path, slot_id slot) {
  std::ifstream file{path, std::ios::binary};
  file.seekg((2 + std::streamoff{slot}) * 64);
  return file.get() == 2;
}

gpu_worker_actor::behavior_type
fake_worker(gpu_worker_actor::stateful_pointer<fake_state>, worker_log* log,
            std::string path) {
  return test::listen<gpu_worker_actor>(
    [=](const msg::memory_registered& x) { log->registered.push_back(x); },
    [=](const msg::copies_done& x) {
      for (const auto& one : x.jobs) // Of a slot with the job's number.
        log->heard.push_back(
          std::to_string(one.job) + (one.ok ? " done, " : " failed, ")
          + (is_valid(path, static_cast<slot_id>(one.job)) ? "valid" : "not"));
    },
    [=](const msg::fence_made& x) {
      log->heard.push_back("fence " + std::to_string(x.step));
    });
}

class NamedPoolOfADevice : public test::actor_fixture {
protected:
  NamedPoolOfADevice() {
    memory.tensors.push_back({bytes.data(), bytes.size(), memory_kind::host,
                              blocks, block_bytes, block_bytes});
    memory.references.push_back({0, 0, 0, 0, block_bytes});
    config.kind = device_kind::host;
    config.host_bytes = 8 * block_bytes;
    // Other checkouts may be tested at the same time.
    config.pool_name = "test-" + std::to_string(::getpid());
    config.rank = 3;
    path = "/dev/shm/kvtide-" + config.pool_name + "-rank3";
  }

  ~NamedPoolOfADevice() override {
    stop();
    EXPECT_EQ(gpu::remove_named_pool(config.pool_name, 3).code, ec::none);
  }

  /// A new life of the rank.
  void start() {
    stop();
    log = {};
    worker = world.spawn(fake_worker, &log, path);
    uut = world.spawn_device(config);
    ask(msg::register_memory{memory});
    world.run();
    ASSERT_EQ(log.registered.size(), 1u);
  }

  void stop() {
    if (!uut)
      return;
    world.kill(worker);
    world.kill(uut);
    uut = nullptr;
  }

  template <class Message>
  void ask(Message message) {
    world.send_as(worker, uut, std::move(message));
  }

  void submit(job_id id) {
    ask(msg::submit_jobs{
      {{id, job_kind::store, 0,
        std::vector<job_row>{{key_of(static_cast<std::uint8_t>(id)),
                              static_cast<slot_id>(id),
                              0,
                              {1}}}}},
      {},
      {}});
  }

  void wait_for(std::size_t heard) {
    ASSERT_TRUE(world.run_until([&] { return log.heard.size() == heard; }));
  }

  std::vector<char> bytes = std::vector<char>(blocks * block_bytes, 'x');
  kv_memory memory;
  device_config config;
  std::string path;
  worker_log log;
  gpu_worker_actor worker;
  device_actor uut;
};

TEST_F(NamedPoolOfADevice, NamesOnceWhatAnEarlierLifeStored) {
  for (const auto kind : {device_kind::host, device_kind::host_virtual}) {
    config.kind = kind;
    start();
    EXPECT_EQ(log.registered[0].reason.code, ec::none);
    EXPECT_EQ(log.registered[0].slots, 8u);
    if (kind == device_kind::host) {
      EXPECT_THAT(log.registered[0].kept, IsEmpty());
      submit(3);
      submit(5);
      wait_for(2);
      continue;
    }
    ASSERT_EQ(log.registered[0].kept.size(), 2u);
    const auto& kept = log.registered[0].kept[1];
    const auto digest = core::wide_digest_of(key_of(5));
    EXPECT_EQ(kept.slot, 5u);
    EXPECT_EQ(kept.digest_low, digest.low);
    EXPECT_EQ(kept.digest_high, digest.high);
    EXPECT_THAT(log.registered[0].notes.back(), HasSubstr("kept 2 chunks"));
    ask(msg::unregister_memory{});
    ask(msg::register_memory{memory});
    world.run();
    EXPECT_THAT(log.registered.back().kept, IsEmpty());
  }
}

TEST_F(NamedPoolOfADevice, ReportsAStoreOnlyAfterItsEntryIsValid) {
  start();
  for (job_id id = 0; id < 8; ++id)
    submit(id);
  wait_for(8);
  EXPECT_THAT(log.heard, testing::Each(HasSubstr("done, valid")));
}

TEST_F(NamedPoolOfADevice, ReportsItInTheTurnOfSimulatedTime) {
  config.kind = device_kind::host_virtual;
  config.latency = 100ns;
  start();
  submit(2);
  ask(msg::device_tick{50});
  world.run();
  EXPECT_THAT(log.heard, IsEmpty());
  ask(msg::device_tick{100});
  wait_for(1);
  EXPECT_THAT(log.heard, ElementsAre("2 done, valid"));
}

TEST_F(NamedPoolOfADevice, AStoreThatFailsIsNotThere) {
  config.fault = [](job_id id, job_kind) {
    return id == 4 ? gpu::copy_fault{gpu::fault_kind::fail} : gpu::copy_fault{};
  };
  start();
  submit(4);
  submit(6);
  wait_for(2);
  start();
  ASSERT_EQ(log.registered[0].kept.size(), 1u);
  EXPECT_EQ(log.registered[0].kept[0].slot, 6u);
}

TEST_F(NamedPoolOfADevice, IsRefusedToReplicas) {
  memory.writers = 2;
  start();
  EXPECT_EQ(log.registered[0].reason.code, ec::unsupported);
  EXPECT_THAT(log.registered[0].reason.text, HasSubstr("pool_name"));
}

TEST_F(NamedPoolOfADevice, IsRefusedWhileAnEarlierLifeHasIt) {
  start();
  const auto before = std::exchange(uut, world.spawn_device(config));
  worker = world.spawn(fake_worker, &log, path);
  ask(msg::register_memory{memory});
  world.run();
  EXPECT_EQ(log.registered.back().reason.code, ec::out_of_order);
  world.kill(before);
  ask(msg::register_memory{memory});
  world.run();
  EXPECT_EQ(log.registered.back().reason.code, ec::none);
}

// -- the worker ---------------------------------------------------------------

scheduler_worker_port::behavior_type
fake_scheduler(scheduler_worker_port::stateful_pointer<fake_state>,
               texts* heard) {
  return test::listen<scheduler_worker_port>(
    [=](const msg::chunks_kept& x) {
      heard->push_back("kept " + std::to_string(x.chunks.front().slot) + " to "
                       + std::to_string(x.chunks.back().slot) + " of life "
                       + std::to_string(x.incarnation));
    },
    [=](const msg::worker_ready& x) {
      heard->push_back("ready " + std::to_string(x.incarnation));
    });
}

class ChunksKept : public test::actor_fixture {
protected:
  void start(std::size_t chunks) {
    boss = world.spawn(fake_scheduler, &heard);
    // One in another process comes by `attach`.
    const auto here = config.remote ? scheduler_worker_port{} : boss;
    uut = world.spawn(gpu_worker, config, world.spawn(test::mute<device_actor>),
                      here, world.spawn(test::mute<rank_side_actor>));
    auto answer = msg::memory_registered{8'000, 64, {}, {}};
    for (slot_id slot = 0; slot < chunks; ++slot)
      answer.kept.push_back({slot, slot + 1, slot + 2});
    tell(msg::register_kv{kv_memory{}});
    tell(std::move(answer));
  }

  template <class Message>
  void tell(Message message) {
    world.send_as(boss, uut, std::move(message));
    world.run();
  }

  texts take_heard() {
    return std::exchange(heard, {});
  }

  gpu_worker_config config;
  texts heard;
  scheduler_worker_port boss;
  gpu_worker_actor uut;
};

TEST_F(ChunksKept, AreNamedInPartsBeforeTheRankIsReady) {
  config.incarnation = 7;
  start(4000);
  EXPECT_THAT(take_heard(),
              ElementsAre("kept 0 to 1599 of life 7",
                          "kept 1600 to 3199 of life 7",
                          "kept 3200 to 3999 of life 7", "ready 7"));
}

TEST_F(ChunksKept, AreNotNamedIfThereAreNone) {
  config.incarnation = 7;
  start(0);
  EXPECT_THAT(take_heard(), ElementsAre("ready 7"));
}

TEST_F(ChunksKept, AreNamedToEachSchedulerUntilAJobMayChangeThem) {
  config.remote = true;
  start(5);
  EXPECT_THAT(take_heard(), IsEmpty()) << "nobody is there";
  auto attach = [&, call = 0u]() mutable {
    tell(msg::attach{2, 11, caf::actor_cast<caf::strong_actor_ptr>(boss)});
    tell(msg::seat{++call, {}, 0});
  };
  attach();
  EXPECT_THAT(take_heard(), ElementsAre("kept 0 to 4 of life 2", "ready 2"));
  attach();
  EXPECT_THAT(take_heard(), ElementsAre("kept 0 to 4 of life 2", "ready 2"));
  auto plan = msg::begin_step{1, {}, {}, {}};
  plan.loads.push_back({0, job_kind::load, 0, {}});
  tell(plan);
  attach();
  EXPECT_THAT(take_heard(), ElementsAre("ready 2"));
}

} // namespace
} // namespace kvtide
