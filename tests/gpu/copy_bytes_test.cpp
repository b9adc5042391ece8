// SPDX-License-Identifier: Apache-2.0

/// @file
/// The contract of `copy_engine`: which bytes are where afterwards.

#include "gpu/copy_engine.hpp"
#include "tests/gpu/engine_kinds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

constexpr std::uint8_t poison = 0xA5;

using bytes = std::vector<std::uint8_t>;

/// Both sides, what they should hold, and an engine between them.
class copy_bytes : public ::testing::TestWithParam<engine_kind> {
protected:
  void SetUp() override {
    if (const auto why = GetParam().missing(); !why.empty())
      GTEST_SKIP() << why;
    GetParam().start();
  }

  void TearDown() override {
    rig.reset();
    home.reset();
    if (!IsSkipped())
      GetParam().check();
  }

  /// Both sides full of different bytes.
  void make(std::size_t each_side) {
    side = each_side;
    home = GetParam().make_home(side, side);
    blocks = random_bytes(side);
    slots = random_bytes(side);
    home->write(home->blocks(), blocks.data(), side);
    home->write(home->slots(), slots.data(), side);
    auto config = host_engine_config{};
    config.streams_per_direction = 2;
    rig = GetParam().make(std::move(config), *home);
  }

  bytes random_bytes(std::size_t count) {
    auto out = bytes(count);
    for (auto& x : out)
      x = static_cast<std::uint8_t>(random());
    return out;
  }

  std::size_t below(std::size_t limit) {
    return static_cast<std::size_t>(random() % limit);
  }

  /// Adds a fragment to a job and makes it in the model. Its destination is
  /// poisoned first, so that bytes that were there before prove nothing.
  void add(copy_job& job, std::size_t block_at, std::size_t slot_at,
           std::size_t count) {
    auto* block = home->blocks() + block_at;
    auto* slot = home->slots() + slot_at;
    const auto row = static_cast<std::uint32_t>(job.fragments.size());
    const auto dirt = bytes(count, poison);
    if (job.kind == job_kind::store) {
      job.fragments.push_back({slot, block, count, row});
      home->write(slot, dirt.data(), count);
      std::copy_n(blocks.begin() + static_cast<std::ptrdiff_t>(block_at), count,
                  slots.begin() + static_cast<std::ptrdiff_t>(slot_at));
    } else {
      job.fragments.push_back({block, slot, count, row});
      home->write(block, dirt.data(), count);
      std::copy_n(slots.begin() + static_cast<std::ptrdiff_t>(slot_at), count,
                  blocks.begin() + static_cast<std::ptrdiff_t>(block_at));
    }
  }

  void expect_model() {
    auto found = bytes(side);
    home->read(found.data(), home->blocks(), side);
    EXPECT_TRUE(found == blocks) << "blocks";
    home->read(found.data(), home->slots(), side);
    EXPECT_TRUE(found == slots) << "slots";
    for (const auto& x : rig->done)
      EXPECT_EQ(x.text, "");
  }

  std::mt19937_64 random{1};
  std::size_t side = 0;
  bytes blocks;
  bytes slots;
  std::unique_ptr<memory_home> home;
  std::unique_ptr<engine_rig> rig;
};

TEST_P(copy_bytes, OddSizesAndUnalignedTailsInBothDirectionsAtOnce) {
  make(128u << 10);
  // Cells of both sides: stores take even ones, loads odd ones, so that nothing
  // overlaps.
  constexpr std::size_t cell = 1 << 10;
  const auto cells = side / cell;
  for (auto turn = 0; turn < 4; ++turn) {
    auto order = std::vector<std::size_t>(cells / 2);
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = 2 * i;
    std::shuffle(order.begin(), order.end(), random);
    auto jobs = std::vector<copy_job>(8);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].id = rig->done.size() + i;
      jobs[i].kind = i % 2 == 0 ? job_kind::store : job_kind::load;
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto& job = jobs[i % jobs.size()];
      const auto odd = job.kind == job_kind::load ? cell : 0;
      const auto block_at = order[i] * cell + odd + below(64);
      const auto slot_at = 2 * i * cell + odd + below(64);
      add(job, block_at, slot_at, 1 + below(cell - 64));
    }
    const auto until = rig->done.size() + jobs.size();
    for (auto& job : jobs)
      rig->submit(std::move(job));
    rig->run(until);
    expect_model();
  }
}

TEST_P(copy_bytes, ThousandsOfFragmentsInOneJob) {
  const auto count = GetParam().many;
  constexpr std::size_t size = 48;
  make(2 * count * size);
  for (const auto kind : {job_kind::store, job_kind::load}) {
    auto job = copy_job{};
    job.id = rig->done.size();
    job.kind = kind;
    for (std::size_t i = 0; i < count; ++i)
      add(job, 2 * i * size, (2 * ((i * 7'919) % count) + 1) * size, size);
    rig->submit(std::move(job));
    rig->run(rig->done.size() + 1);
    expect_model();
  }
}

TEST_P(copy_bytes, FragmentsThatTouchAreOneCopyOrMany) {
  constexpr std::size_t size = 1'000;
  make(64 * size);
  auto job = copy_job{};
  job.kind = job_kind::store;
  for (std::size_t i = 0; i < 20; ++i)
    add(job, i * size, i * size, size); // Adjacent on both sides.
  for (std::size_t i = 20; i < 40; ++i)
    add(job, i * size, (i + 20 - 2 * (i % 2)) * size, size); // On one.
  rig->submit(std::move(job));
  rig->run(1);
  expect_model();
}

TEST_P(copy_bytes, AFragmentLargerThanASlice) {
  make(128u << 10);
  auto store = copy_job{};
  store.kind = job_kind::store;
  add(store, 17, 33, 50'001);
  rig->submit(std::move(store));
  auto load = copy_job{};
  load.id = 1;
  load.kind = job_kind::load;
  add(load, (64u << 10) + 5, (64u << 10) + 5, 40'003);
  rig->submit(std::move(load));
  rig->run(2);
  expect_model();
}

TEST_P(copy_bytes, FragmentsWithoutBytesAreNothing) {
  make(4'096);
  auto job = copy_job{};
  job.kind = job_kind::load;
  add(job, 0, 0, 0);
  add(job, 100, 100, 50);
  add(job, 200, 300, 0);
  rig->submit(std::move(job));
  rig->run(1);
  EXPECT_EQ(rig->done[0].bytes, 50u);
  expect_model();
}

/// An engine that is gone writes no more: what its owner reads then stays.
TEST_P(copy_bytes, ACancelledBatchWritesNothingAfterwards) {
  make(128u << 10);
  for (job_id id = 0; id < 16; ++id) {
    auto job = copy_job{};
    job.id = id;
    job.kind = id % 2 == 0 ? job_kind::store : job_kind::load;
    for (std::size_t i = 0; i < 8; ++i)
      add(job, (8 * id + i) * 1'024, (8 * id + i) * 1'024, 1'000);
    rig->submit(std::move(job));
  }
  rig->destroy_engine();
  const auto dirt = bytes(side, 77);
  home->write(home->blocks(), dirt.data(), side);
  home->write(home->slots(), dirt.data(), side);
  auto found = bytes(side);
  home->read(found.data(), home->blocks(), side);
  EXPECT_TRUE(found == dirt);
  home->read(found.data(), home->slots(), side);
  EXPECT_TRUE(found == dirt);
}

INSTANTIATE_TEST_SUITE_P(engines, copy_bytes,
                         ::testing::ValuesIn(engine_kinds()),
                         [](const auto& param) {
                           return std::string{param.param.name};
                         });

} // namespace
} // namespace kvtide::gpu
