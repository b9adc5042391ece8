// SPDX-License-Identifier: Apache-2.0

/// @file
/// The public copier, on every device that this program has.

#include "kvtide/gpu.hpp"

#include "tests/gpu/copier_rig.hpp"
#include "tests/gpu/engine_rig.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto store = job_kind::store;
constexpr auto load = job_kind::load;

class copier_contract : public ::testing::TestWithParam<copier_device> {
protected:
  void SetUp() override {
    if (GetParam().missing != nullptr)
      if (const auto why = GetParam().missing(); !why.empty())
        GTEST_SKIP() << why;
    if (GetParam().begin != nullptr)
      GetParam().begin();
  }

  void TearDown() override {
    if (GetParam().check != nullptr && !IsSkipped())
      GetParam().check();
  }

  copier_compute hold(copier_rig& rig) {
    return GetParam().hold(rig.copies);
  }

  int device = GetParam().device;
};

TEST_P(copier_contract, BringsBackWhatItStored) {
  copier_rig rig{device};
  const auto pool = rig.register_kv();
  EXPECT_EQ(pool.slots, 8u);
  EXPECT_EQ(pool.slot_bytes, 2 * copier_rig::block_bytes);
  EXPECT_THAT(pool.notes, Contains(HasSubstr("8 slots")));
  rig.fill(1, 11);
  rig.fill(2, 22);
  rig.submit(copier_rig::make_job(0, store, 3, {1, 2}));
  rig.run(1);
  rig.submit(copier_rig::make_job(1, load, 3, {5, 4}));
  rig.run(2);
  EXPECT_TRUE(rig.holds(5, 11));
  EXPECT_TRUE(rig.holds(4, 22));
  for (job_id id = 0; id < 2; ++id) {
    EXPECT_EQ(rig.ended_jobs[id].job, id);
    EXPECT_EQ(rig.ended_jobs[id].status, job_status::done);
    EXPECT_EQ(rig.ended_jobs[id].bytes, 2 * copier_rig::block_bytes);
  }
  EXPECT_EQ(rig.copies.in_flight(), 0u);
}

TEST_P(copier_contract, StartsAStoreBehindTheComputeThatWritesItsBlocks) {
  copier_rig rig{device};
  rig.register_kv();
  rig.fill(1, 1);
  const auto compute = hold(rig);
  rig.submit(copier_rig::make_job(0, store, 0, {1, no_block}), {compute.event});
  rig.poll();
  EXPECT_THAT(rig.ended_jobs, IsEmpty());
  rig.fill(1, 2);
  compute.end();
  rig.run(1);
  rig.submit(copier_rig::make_job(1, load, 0, {3, no_block}));
  rig.run(2);
  EXPECT_TRUE(rig.holds(3, 2));
}

TEST_P(copier_contract, TakesARecordedStreamForAnEvent) {
  copier_rig rig{device};
  rig.register_kv();
  const std::vector<std::byte> bytes(copier_rig::block_bytes, std::byte{7});
  ASSERT_EQ(
    rig.stream.copy_to_device(rig.at(1), bytes.data(), bytes.size()).code,
    ec::none);
  const auto event = rig.copies.record(rig.stream.handle());
  ASSERT_TRUE(event.ok());
  EXPECT_NE(event.value(), 0u);
  rig.submit(copier_rig::make_job(0, store, 0, {1, no_block}), {event.value()});
  rig.submit(copier_rig::make_job(1, load, 0, {2, no_block}));
  rig.run(2);
  EXPECT_TRUE(rig.holds(2, 7));
}

TEST_P(copier_contract, FailsAJobBehindAnEventThatNobodyMade) {
  copier_rig rig{device};
  rig.register_kv();
  rig.submit(copier_rig::make_job(0, store, 0, {1, 2}), {0});
  rig.run(1);
  EXPECT_EQ(rig.ended_jobs[0].status, job_status::failed);
  EXPECT_EQ(rig.ended_jobs[0].bytes, 0u);
  EXPECT_FALSE(rig.ended_jobs[0].text.empty());
}

TEST_P(copier_contract, StartsAJobAfterThoseThatItNames) {
  copier_rig rig{device};
  rig.register_kv();
  rig.fill(1, 1);
  rig.fill(2, 2);
  const auto compute = hold(rig);
  rig.submit(copier_rig::make_job(0, store, 0, {1, no_block}), {compute.event});
  // Of other slots, so that nothing but the name orders them.
  rig.submit(copier_rig::make_job(1, store, 1, {2, no_block}), {}, {0, 99});
  rig.poll();
  EXPECT_THAT(rig.ended_jobs, IsEmpty());
  compute.end();
  rig.run(2);
  EXPECT_EQ(rig.ended_jobs[0].job, 0u);
  EXPECT_EQ(rig.ended_jobs[1].job, 1u);
}

TEST_P(copier_contract, LoadsBehindTheStoreOfTheSameSlot) {
  copier_rig rig{device};
  rig.register_kv();
  rig.fill(1, 1);
  const auto compute = hold(rig);
  rig.submit(copier_rig::make_job(0, store, 0, {1, no_block}), {compute.event});
  rig.submit(copier_rig::make_job(1, load, 0, {2, no_block}));
  compute.end();
  rig.run(2);
  EXPECT_TRUE(rig.holds(2, 1));
}

TEST_P(copier_contract, HoldsAFenceUntilItsJobsHaveEnded) {
  copier_rig rig{device};
  rig.register_kv();
  const auto compute = hold(rig);
  rig.submit(copier_rig::make_job(0, store, 0, {1, 2}), {compute.event});
  const auto made = rig.copies.make_fence(5, {0});
  rig.poll();
  EXPECT_FALSE(rig.open(made, 5));
  compute.end();
  rig.run(1);
  if (made) {
    EXPECT_EQ(rig.stream.wait(*made).code, ec::none);
    EXPECT_EQ(rig.stream.synchronize().code, ec::none);
  } else {
    rig.run_until([&] { return rig.open(made, 5); });
  }
}

TEST_P(copier_contract, HoldsNothingBackForJobsThatAreNotInFlight) {
  copier_rig rig{device};
  EXPECT_TRUE(rig.open(rig.copies.make_fence(1, {}), 1));
  EXPECT_TRUE(rig.open(rig.copies.make_fence(2, {4}), 2));
  rig.register_kv();
  EXPECT_TRUE(rig.open(rig.copies.make_fence(3, {4}), 3));
}

TEST_P(copier_contract, RefusesAJobThatDoesNotFitAndStartsNothing) {
  copier_rig rig{device};
  rig.register_kv();
  const auto outside
    = rig.copies.submit(copier_rig::make_job(0, store, 8, {1, 2}));
  EXPECT_EQ(outside.code, ec::invalid_argument);
  EXPECT_THAT(outside.text, HasSubstr("slot 8"));
  auto of_no_kind = copier_rig::make_job(0, store, 7, {1, 2});
  of_no_kind.kind = static_cast<job_kind>(9);
  EXPECT_EQ(rig.copies.submit(of_no_kind).code, ec::invalid_argument);
  EXPECT_EQ(rig.copies.in_flight(), 0u);
  // Its id is still free.
  rig.submit(copier_rig::make_job(0, store, 7, {1, 2}));
  rig.run(1);
}

TEST_P(copier_contract, RefusesASecondJobOfTheSameId) {
  copier_rig rig{device};
  rig.register_kv();
  const auto compute = hold(rig);
  rig.submit(copier_rig::make_job(0, store, 0, {1, 2}), {compute.event});
  const auto twice
    = rig.copies.submit(copier_rig::make_job(0, store, 1, {3, 4}));
  EXPECT_EQ(twice.code, ec::invalid_argument);
  EXPECT_THAT(twice.text, HasSubstr("job 0"));
  EXPECT_EQ(rig.copies.in_flight(), 1u);
  compute.end();
  rig.run(1);
}

TEST_P(copier_contract, UnregistersOnceNoCopyCanTouchTheMemory) {
  copier_rig rig{device};
  EXPECT_EQ(rig.copies.unregister_kv().code, ec::out_of_order);
  rig.register_kv();
  EXPECT_EQ(rig.copies.register_kv(rig.kv).failure().code, ec::out_of_order);
  const auto compute = hold(rig);
  rig.submit(copier_rig::make_job(0, store, 0, {1, 2}), {compute.event});
  EXPECT_EQ(rig.copies.unregister_kv().code, ec::none);
  EXPECT_EQ(rig.copies.unregister_kv().code, ec::out_of_order);
  rig.poll();
  EXPECT_FALSE(rig.unregistered);
  EXPECT_EQ(rig.copies.submit(copier_rig::make_job(1, store, 1, {1, 2})).code,
            ec::out_of_order);
  compute.end();
  rig.run_until([&] { return rig.unregistered; });
  EXPECT_EQ(rig.ended_jobs.size(), 1u);
  EXPECT_EQ(rig.copies.submit(copier_rig::make_job(2, store, 1, {1, 2})).code,
            ec::out_of_order);
}

TEST_P(copier_contract, KeepsThePoolWhileMemoryIsUnregistered) {
  copier_rig rig{device};
  rig.register_kv();
  rig.fill(1, 9);
  rig.submit(copier_rig::make_job(0, store, 2, {1, no_block}));
  rig.run(1);
  ASSERT_EQ(rig.copies.unregister_kv().code, ec::none);
  rig.run_until([&] { return rig.unregistered; });
  rig.fill(1, 0);
  rig.register_kv();
  rig.submit(copier_rig::make_job(1, load, 2, {1, no_block}));
  rig.run(2);
  EXPECT_TRUE(rig.holds(1, 9));
}

TEST_P(copier_contract, RefusesMemoryThatDoesNotHoldWhatItSays) {
  copier_rig rig{device};
  auto wrong = rig.kv;
  wrong.references[0].offset = 1;
  EXPECT_EQ(rig.copies.register_kv(wrong).failure().code, ec::invalid_argument);
  // The right one is still welcome.
  EXPECT_TRUE(rig.copies.register_kv(rig.kv).ok());
}

TEST_P(copier_contract, RefusesAPoolOfLessThanOneSlot) {
  auto opts = copier_rig::options();
  opts.host_bytes = copier_rig::block_bytes;
  copier_rig rig{device, std::move(opts)};
  const auto refused = rig.copies.register_kv(rig.kv);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::invalid_options);
}

TEST_P(copier_contract, WakesWhoeverWaitsElsewhere) {
  wake_signal woken;
  auto opts = copier_rig::options();
  opts.wake = [&woken] { woken.set(); };
  copier_rig rig{device, std::move(opts)};
  rig.register_kv();
  rig.submit(copier_rig::make_job(0, store, 0, {1, 2}));
  for (rig.poll(); rig.ended_jobs.empty(); rig.poll())
    ASSERT_TRUE(woken.wait(copier_rig::patience));
  EXPECT_EQ(rig.copies.unregister_kv().code, ec::none);
  for (rig.poll(); !rig.unregistered; rig.poll())
    ASSERT_TRUE(woken.wait(copier_rig::patience));
}

TEST_P(copier_contract, RecordsOnAnyThread) {
  copier_rig rig{device};
  rig.register_kv();
  auto event = std::uint64_t{0};
  std::thread{[&] {
    event = rig.copies.record(rig.stream.handle()).value();
  }}.join();
  rig.submit(copier_rig::make_job(0, store, 0, {1, 2}), {event});
  rig.run(1);
  EXPECT_EQ(rig.ended_jobs[0].status, job_status::done);
}

TEST_P(copier_contract, EndsWithJobsInFlight) {
  copier_rig rig{device};
  rig.register_kv();
  const auto compute = hold(rig);
  rig.submit(copier_rig::make_job(0, store, 0, {1, 2}), {compute.event});
  if (device != host_device) // A device ends with its work.
    compute.end();
}

TEST_P(copier_contract, IsNotLostWithoutAReason) {
  copier_rig rig{device};
  EXPECT_EQ(rig.copies.lost().code, ec::none);
  rig.register_kv();
  EXPECT_EQ(rig.copies.lost().code, ec::none);
}

INSTANTIATE_TEST_SUITE_P(devices, copier_contract,
                         ::testing::ValuesIn(copier_devices()),
                         [](const auto& one) { return one.param.name; });

// -- without a device ---------------------------------------------------------

TEST(copier_options_check, RefusesWhatCannotWork) {
  const auto refused = [](auto change) {
    auto opts = copier_rig::options();
    change(opts);
    const auto started = copier::start(std::move(opts));
    return !started.ok() && started.failure().code == ec::invalid_options;
  };
  EXPECT_TRUE(refused([](auto& x) { x.groups = 0; }));
  EXPECT_TRUE(refused([](auto& x) { x.groups = 1'025; }));
  EXPECT_TRUE(refused([](auto& x) { x.blocks_per_chunk = 0; }));
  EXPECT_TRUE(refused([](auto& x) { x.host_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& x) { x.host_threads = 0; }));
  EXPECT_TRUE(refused([](auto& x) { x.host_threads = 257; }));
  EXPECT_TRUE(refused([](auto& x) { x.cuda.kernel_blocks = 0; }));
  EXPECT_TRUE(refused([](auto& x) { x.cuda.slice_bytes = 1; }));
  EXPECT_TRUE(
    refused([](auto& x) { x.cuda.path = static_cast<copy_path>(77); }));
  EXPECT_TRUE(
    refused([](auto& x) { x.cuda.fences = static_cast<fence_wait>(77); }));
  EXPECT_TRUE(refused(
    [](auto& x) { x.cuda.huge_pages = static_cast<huge_page_use>(77); }));
  EXPECT_TRUE(refused([](auto& x) { x.cuda.streams_per_direction = 0; }));
  EXPECT_FALSE(refused([](auto&) {}));
}

TEST(copier_options_check, SaysThatThereIsNoMemory) {
  auto opts = copier_rig::options();
  opts.host_bytes = std::uint64_t{1} << 62;
  auto made = copier::start(opts);
  ASSERT_TRUE(made.ok()) << made.failure().text;
  const auto memory = device_memory::allocate(host_device, 4'096).value();
  auto kv = kv_memory{};
  kv.tensors = {{memory.data(), 4'096, memory.kind(), 1, 4'096, 4'096}};
  kv.references = {{0, 0, 0, 0, 4'096}};
  const auto refused = made.value().register_kv(kv);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::out_of_memory);
}

TEST(copier_options_check, SaysThatThereIsNoSuchDevice) {
  constexpr auto none = 100'000;
  auto opts = copier_rig::options();
  opts.device = none;
  EXPECT_EQ(copier::start(opts).failure().code, ec::unsupported);
  EXPECT_EQ(device_memory::allocate(none, 1).failure().code, ec::unsupported);
  EXPECT_EQ(compute_stream::make(none).failure().code, ec::unsupported);
  const auto facts = describe_device(none);
  ASSERT_FALSE(facts.ok());
  EXPECT_EQ(facts.failure().code, ec::unsupported);
  EXPECT_FALSE(facts.failure().text.empty());
}

TEST(host_compute_stream, RefusesToWaitForAnEvent) {
  auto stream = compute_stream::make(host_device).value();
  EXPECT_EQ(stream.wait({}).code, ec::none);
  EXPECT_EQ(stream.wait({fence::kind_t::event, 1}).code, ec::invalid_argument);
}

TEST(host_device_memory, HasAtLeastOneByte) {
  EXPECT_EQ(device_memory::allocate(host_device, 0).failure().code,
            ec::invalid_argument);
  const auto memory = device_memory::allocate(host_device, 10).value();
  EXPECT_EQ(memory.bytes(), 10u);
  EXPECT_EQ(memory.kind(), memory_kind::host);
  EXPECT_NE(memory.data(), nullptr);
}

} // namespace
} // namespace kvtide::gpu
