// SPDX-License-Identifier: Apache-2.0

/// @file
/// Public failures of programs on CAF (docs/hazards.md) that a test on its own
/// thread can show. With real threads: hazards_runtime_test.cpp.

#include "actors/device.hpp"
#include "actors/gpu_worker.hpp"
#include "tests/actors/short_forms.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/listen.hpp"
#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

// -- CRQ ----------------------------------------------------------------------

struct fake_state {
  static inline const char* name = "fake";
};

using report_log = std::vector<std::string>;

scheduler_worker_port::behavior_type
fake_scheduler(scheduler_worker_port::stateful_pointer<fake_state>,
               report_log* log) {
  return listen<scheduler_worker_port>([=](const msg::transfers_done& all) {
    for (const auto& x : all.reports)
      log->push_back(
        (x.status == job_status::failed ? "failed " : "not failed ")
        + std::to_string(x.job));
  });
}

rank_side_actor::behavior_type
fake_rank_side(rank_side_actor::stateful_pointer<fake_state>, report_log* log) {
  return listen<rank_side_actor>(
    [=](const step_ready& x) {
      log->push_back("step " + std::to_string(x.step));
    },
    [=](const rank_failed& x) {
      log->push_back(x.reason.code == ec::device_failure ? "device failed"
                                                         : "?");
    });
}

class Throwing : public actor_fixture {
protected:
  static constexpr std::uint64_t block_bytes = 64;

  /// A worker whose device throws when it is handed job 2.
  void start() {
    auto device = device_config{};
    device.kind = device_kind::host_virtual;
    device.host_bytes = 8 * block_bytes;
    device.latency = 1h;
    device.fault = [](job_id id, job_kind) -> gpu::copy_fault {
      if (id == 2)
        throw std::runtime_error{"as the test wants"};
      return {};
    };
    auto worker = gpu_worker_config{};
    worker.job_deadline = 1h;
    uut = world.spawn(gpu_worker, worker, world.spawn_device(device),
                      world.spawn(fake_scheduler, &reports),
                      world.spawn(fake_rank_side, &rank));
    auto memory = kv_memory{};
    memory.tensors.push_back({bytes.data(), bytes.size(), memory_kind::host, 8,
                              block_bytes, block_bytes});
    memory.references.push_back({0, 0, 0, 0, block_bytes});
    tell(msg::register_kv{memory});
  }

  template <class Message>
  void tell(Message message) {
    world.send(uut, std::move(message));
    world.run();
  }

  static job store(job_id id) {
    return {id, job_kind::store, 0,
            std::vector<job_row>{
              {{}, static_cast<slot_id>(id), 0, {static_cast<block_id>(id)}}}};
  }

  std::vector<char> bytes = std::vector<char>(8 * block_bytes);
  report_log reports;
  report_log rank;
  gpu_worker_actor uut;
};

TEST_F(Throwing, CRQ_01_every_job_is_reported_and_every_step_returns) {
  start();
  tell(msg::begin_step{1, {}, {}, {}});
  tell(msg::end_step{1, {}});
  tell(msg::stores{1, {store(1), store(2), store(3)}});
  // The handler throws at job 2: job 1 is in flight, the device has not seen
  // job 3, and job 4 waits with the worker.
  world.send(uut, msg::begin_step{2, {}, {}, {1, 2, 3}});
  world.send(uut, msg::stores{2, {store(4)}});
  world.run();
  EXPECT_THAT(reports,
              ElementsAre("failed 1", "failed 2", "failed 3", "failed 4"));
  EXPECT_THAT(rank, ElementsAre("step 1", "device failed", "step 2"));
  // The worker is gone as well: its rank is lost until it is started again.
  EXPECT_TRUE(caf::actor_cast<caf::abstract_actor*>(uut)->getf(
    caf::abstract_actor::is_terminated_flag));
}

TEST(Hazards, CRQ_01_the_job_of_a_dead_worker_costs_a_recompute) {
  auto sys = test_system{plain_options()};
  warm(sys, P, {{1, 2}}, 8);
  sys.add(R, 9, {P, 8});
  EXPECT_EQ(sys.lookup(R), 8);
  sys.alloc(R, {{4, 5, 6}}, 8);
  EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
  sys.kill_rank(0);
  EXPECT_THAT(sys.notices(),
              ElementsAre("rank_lost 0", "load_failed R 1 from 0 [4 5]"));
  EXPECT_EQ(sys.step({{{R, 9, {{4, 5, 6}}}}, {}}), "-") << "it goes on";
  EXPECT_EQ(sys.counters().pinned_slots, 0u);
}

// -- CTS ----------------------------------------------------------------------

TEST(Hazards, CTS_01_timers_follow_the_clock_of_the_test) {
  auto opts = plain_options();
  opts.job_deadline = 1s;
  auto sys = test_system{opts};
  warm(sys, P, {{1}}, 4);
  sys.add(R, 5, {P, 4});
  EXPECT_EQ(sys.lookup(R), 4);
  sys.alloc(R, {{4, 5}}, 4);
  EXPECT_EQ(sys.step(), "L1{R#0->4}"); // Arms the deadline of the load.
  sys.pass(0s);
  EXPECT_THAT(sys.notices(), IsEmpty());
  sys.pass_deadline();
  EXPECT_THAT(sys.notices(), ElementsAre("load_failed R 1 from 0 [4] new"));
  sys.pass_deadline();
  EXPECT_THAT(sys.notices(), IsEmpty()) << "it fires once";
}

} // namespace
} // namespace kvtide::test
