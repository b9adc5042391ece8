// SPDX-License-Identifier: Apache-2.0

/// @file
/// The order checker of a device at work: each test sends it what S4 and S6
/// exclude.

#include "actors/device.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/breach_ear.hpp"
#include "tests/support/listen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

using ::testing::ElementsAre;
using ::testing::StartsWith;

namespace kvtide::test {
namespace {

class DeviceOrder : public actor_fixture {
protected:
  DeviceOrder() {
    ear.expect();
    auto cfg = device_config{};
    cfg.kind = device_kind::host_virtual;
    cfg.on_breach = ear.listener();
    uut = world.spawn_device(std::move(cfg));
    worker = world.spawn(mute<gpu_worker_actor>);
  }

  template <class Message>
  void ask(Message message) {
    world.send_as(worker, uut, std::move(message));
    world.run();
  }

  static std::vector<job> store(job_id id) {
    auto out = job{};
    out.id = id;
    return {out};
  }

  breach_ear ear;
  gpu_worker_actor worker;
  device_actor uut;
};

TEST_F(DeviceOrder, S4NobodyWaitsForAJobThatWasNotHandedOver) {
  ask(msg::submit_jobs{store(3), {}, {}});
  ask(msg::make_fence{2, {3, 4}});
  EXPECT_THAT(ear.take(),
              ElementsAre("S4 a job was waited for before it was handed over: "
                          "job 4 in the fence of step 2"));
}

TEST_F(DeviceOrder, S6ComputeDoesNotGoBack) {
  ask(msg::submit_jobs{store(3), {}, {}, step_id{6}});
  ask(msg::submit_jobs{store(4), {}, {}, step_id{5}});
  EXPECT_THAT(ear.take(), ElementsAre(StartsWith("S6 copies wait for compute "
                                                 "of an earlier step")));
}

} // namespace
} // namespace kvtide::test
