// SPDX-License-Identifier: Apache-2.0

/// @file
/// G4, and the other paths that bytes take.

#include "gpu/cuda/copy_commands.hpp"
#include "gpu/cuda/piece_tables.hpp"
#include "tests/gpu/cuda_test.hpp"

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;

class cuda_paths : public cuda_test {
protected:
  void make_by(copy_path path) {
    make([path](cuda_engine_config& x) { x.path = path; });
  }

  static std::uint64_t batches() {
    return stand_in::calls("cudaMemcpyBatchAsync");
  }

  static std::uint64_t plain() {
    return stand_in::calls("cudaMemcpyAsync");
  }

  /// But for the one that loads the kernel at start.
  static std::uint64_t kernels() {
    return stand_in::calls("kernel") - 1;
  }

  /// A store of fragments of 16 bytes that touch on the host only.
  copy_job many(job_id id, std::size_t count) {
    auto made = copy_job{};
    made.id = id;
    for (std::size_t i = 0; i < count; ++i) {
      auto* from = block(0) + 48 * i;
      fill(from, static_cast<int>(i % 251), 16);
      made.fragments.push_back(part(job_kind::store, from, slot(0) + 16 * i, 16,
                                    static_cast<std::uint32_t>(i)));
    }
    return made;
  }

  void expect_many(std::size_t count) {
    auto wrong = std::size_t{0};
    for (std::size_t i = 0; i < count; ++i)
      wrong += holds(slot(0) + 16 * i, static_cast<int>(i % 251), 16) ? 0u : 1u;
    EXPECT_EQ(wrong, 0u);
  }
};

TEST_F(cuda_paths, G4ManyFragmentsAreOneBatch) {
  make_by(copy_path::batch);
  submit(many(0, 100));
  EXPECT_EQ(batches(), 1u);
  EXPECT_EQ(plain(), 0u);
  settle();
  expect_many(100);
}

TEST_F(cuda_paths, G4ABatchHasNoMoreThan4096Descriptors) {
  make_by(copy_path::batch);
  submit(many(0, 4'096));
  EXPECT_EQ(batches(), 1u);
  settle();
  submit(many(1, 4'097));
  EXPECT_EQ(batches(), 3u);
  settle();
  expect_many(4'097);
}

/// The stand-in reads early whatever it is allowed to read early.
TEST_F(cuda_paths, G4ABatchReadsItsSourcesInStreamOrder) {
  make_by(copy_path::batch);
  fill(block(0), 1);
  auto compute = begin_compute();
  submit(after(store(0, 0), compute.event()));
  stand_in::run_all();
  fill(block(0), 2); // What the compute does.
  compute.end();
  settle();
  EXPECT_TRUE(holds(slot(0), 2));
}

TEST_F(cuda_paths, G4ADriverWithoutBatchesGetsPlainCopies) {
  for (const auto code :
       {cudaErrorCallRequiresNewerDriver, cudaErrorNotSupported}) {
    engine.reset();
    make_by(copy_path::batch);
    const auto before = batches();
    stand_in::fail_call("cudaMemcpyBatchAsync", 1, code);
    submit(many(0, 10));
    settle();
    submit(many(1, 10));
    settle();
    EXPECT_EQ(batches() - before, 1u) << "it is not asked again";
    expect_no_error();
  }
  EXPECT_EQ(plain(), 40u);
  expect_many(10);
}

TEST_F(cuda_paths, G4ABatchThatIsRefusedOnceIsTriedAgainTheNextTime) {
  make_by(copy_path::batch);
  stand_in::fail_call("cudaMemcpyBatchAsync", 1, cudaErrorUnknown);
  submit(many(0, 10));
  submit(many(1, 10));
  EXPECT_EQ(batches(), 2u);
  EXPECT_EQ(plain(), 10u);
  settle();
  for (const auto& x : done)
    EXPECT_EQ(x.text, "");
}

/// One bad fragment takes neither the rows before it nor other jobs along.
TEST_F(cuda_paths, G4ABadFragmentFailsItsOwnRow) {
  make_by(copy_path::batch);
  for (std::size_t i = 0; i < 8; ++i)
    fill(block(i), 7);
  auto bad = store(0, 0, 4);
  // Reaches out of the pool.
  bad.fragments[2].dst = slot(0) + 256 * page - unit / 2;
  submit(bad);
  submit(store(1, 4, 4));
  settle();
  expected_refusals = 2; // The batch, and the copy alone.
  EXPECT_THAT(reported(), ElementsAre(0, 1));
  EXPECT_EQ(done[0].result, copy_result::failed);
  EXPECT_EQ(done[0].first_failed_row, 2u);
  EXPECT_EQ(done[0].bytes, 2 * unit);
  EXPECT_THAT(done[0].text, ::testing::HasSubstr("cudaErrorInvalidValue"));
  EXPECT_TRUE(holds(slot(0), 7));
  EXPECT_TRUE(holds(slot(1), 7));
  EXPECT_TRUE(holds(slot(3), 0));
  EXPECT_EQ(done[1].text, "");
  for (std::size_t i = 4; i < 8; ++i)
    EXPECT_TRUE(holds(slot(i), 7));
  EXPECT_EQ(engine->lost().code, ec::none);
}

// -- kernel -------------------------------------------------------------------

TEST_F(cuda_paths, AKernelTakesFragmentsOfAnyAlignment) {
  make_by(copy_path::kernel);
  auto made = store(0, 0);
  made.fragments.clear();
  for (std::size_t i = 0; i < 8; ++i) {
    fill(block(i) + i, 7, 40 + i);
    made.fragments.push_back(part(job_kind::store, block(i) + i,
                                  slot(i) + 2 * i + 1, 40 + i,
                                  static_cast<std::uint32_t>(i)));
  }
  submit(made);
  EXPECT_EQ(kernels(), 1u);
  EXPECT_EQ(plain() + batches(), 0u);
  settle();
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(holds(slot(i) + 2 * i + 1, 7, 40 + i));
    EXPECT_TRUE(holds(slot(i) + 2 * i, 0, 1)) << "not a byte more";
    EXPECT_TRUE(holds(slot(i) + 3 * i + 41, 0, 1));
  }
}

TEST_F(cuda_paths, APieceOfATableIsNotLong) {
  make_by(copy_path::kernel);
  fill(block(0), 7, 100'000);
  auto large = store(0, 0);
  large.fragments[0].bytes = 100'000;
  submit(large);
  settle();
  EXPECT_EQ(kernels(), 1u);
  EXPECT_TRUE(holds(slot(0), 7, 100'000));
  EXPECT_TRUE(holds(slot(0) + 100'000, 0, 16));
}

TEST_F(cuda_paths, WhatATableHasNoRoomForGoesAnotherWay) {
  constexpr auto count = piece_tables::capacity + 10;
  make_memory();
  const auto what = many(0, count).fragments;
  const auto where = value_of(make_stream());
  const auto tables = value_of(piece_tables::make(1));
  auto uut = copy_commands{
    {copy_path::kernel, 0, 1}, *tables, [this](const void* host, auto bytes) {
      return pool->device_address(host, bytes);
    }};
  const auto taken = uut.enqueue(job_kind::store, what, where.get());
  EXPECT_EQ(taken.count, count);
  EXPECT_EQ(taken.why.text, "");
  EXPECT_EQ(stand_in::calls("kernel"), 1u);
  EXPECT_EQ(batches(), 1u);
  stand_in::run_all();
  expect_many(count);
}

TEST_F(cuda_paths, SlicesWithoutAFreeTableGoAnotherWay) {
  make([](cuda_engine_config& x) {
    x.path = copy_path::kernel;
    x.slice_bytes = unit;
  });
  for (std::size_t i = 0; i < 70; ++i)
    fill(block(i), 7);
  submit(store(0, 0, 70));
  EXPECT_EQ(kernels(), 64u);
  EXPECT_EQ(batches(), 6u);
  settle();
  for (std::size_t i = 0; i < 70; ++i)
    EXPECT_TRUE(holds(slot(i), 7));
  submit(store(1, 70));
  EXPECT_EQ(kernels(), 65u) << "tables come back";
}

/// A kernel reads its table when it runs, so nobody else may write it before.
TEST_F(cuda_paths, ATableIsKeptUntilItsKernelHasEnded) {
  make_by(copy_path::kernel);
  auto compute = begin_compute();
  for (std::size_t i = 0; i < 20; ++i)
    fill(block(i), static_cast<int>(i + 1));
  for (job_id id = 0; id < 20; ++id)
    submit(after(store(id, id), compute.event()));
  compute.end();
  settle();
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_TRUE(holds(slot(i), static_cast<int>(i + 1)));
}

TEST_F(cuda_paths, AKernelThatDoesNotLaunchIsReplaced) {
  make_by(copy_path::kernel);
  stand_in::fail_call("kernel", 1, cudaErrorLaunchOutOfResources);
  submit(many(0, 10));
  EXPECT_EQ(batches(), 1u);
  settle();
  EXPECT_EQ(done[0].text, "");
  expect_many(10);
}

TEST_F(cuda_paths, AutomaticIsByKernelForWhatIsSmallAndAlike) {
  make([](cuda_engine_config& x) {
    x.path = copy_path::automatic;
    x.kernel_below = unit;
  });
  auto small = store(0, 0);
  small.fragments[0].bytes = unit - 16;
  submit(small);
  EXPECT_EQ(kernels(), 1u);
  EXPECT_EQ(batches(), 0u);
  submit(store(1, 1)); // Not small.
  EXPECT_EQ(batches(), 1u);
  auto odd = store(2, 2);
  odd.fragments[0].bytes = 16;
  odd.fragments[0].dst = slot(2) + 1; // Not alike.
  submit(odd);
  EXPECT_EQ(batches(), 2u);
  EXPECT_EQ(kernels(), 1u);
}

// -- a pool that is not pinned ------------------------------------------------

class cuda_bounce : public cuda_paths {
protected:
  void make_bouncing(std::uint64_t bytes, copy_path path = copy_path::plain) {
    make_memory({});
    make([&](cuda_engine_config& x) {
      x.bounce_bytes = bytes;
      x.path = path;
    });
  }
};

TEST_F(cuda_bounce, ASliceIsNoLargerThanTheBuffer) {
  make_bouncing(100);
  fill(block(0), 7, 1'000);
  auto large = store(0, 0);
  large.fragments[0].bytes = 1'000;
  submit(large);
  EXPECT_EQ(plain(), 10u);
  settle();
  EXPECT_TRUE(holds(slot(0), 7, 1'000));
  auto back = load(1, 0);
  back.fragments[0] = part(job_kind::load, block(64), slot(0), 1'000);
  submit(back);
  settle();
  EXPECT_TRUE(holds(block(64), 7, 1'000));
}

TEST_F(cuda_bounce, ASliceHasNoMoreFragmentsThanTheBuffer) {
  make_bouncing(1u << 20, copy_path::batch);
  submit(many(0, 4'097));
  EXPECT_EQ(batches(), 2u);
  EXPECT_EQ(stand_in::calls("cudaLaunchHostFunc"), 4u)
    << "two moves and two wakes";
  settle();
  expect_many(4'097);
}

/// What lies in the buffer from before is nobody's.
TEST_F(cuda_bounce, AStoreThatFailedMovesNothingThatWasNotCopied) {
  make_bouncing(1u << 20);
  for (std::size_t i = 0; i < 8; ++i)
    fill(block(i), 7);
  submit(store(0, 4, 4)); // Fills the buffer.
  settle();
  stand_in::fail_call("cudaMemcpyAsync", 3, cudaErrorInvalidValue);
  submit(store(1, 0, 4));
  settle();
  EXPECT_EQ(done[1].result, copy_result::failed);
  EXPECT_EQ(done[1].first_failed_row, 2u);
  EXPECT_TRUE(holds(slot(0), 7));
  EXPECT_TRUE(holds(slot(1), 7));
  EXPECT_TRUE(holds(slot(2), 0));
  EXPECT_TRUE(holds(slot(3), 0));
}

TEST_F(cuda_bounce, AMoveThatIsRefusedFailsTheJob) {
  make_bouncing(1u << 20);
  fill(block(0), 7);
  fill(slot(1), 8);
  stand_in::fail_call("cudaLaunchHostFunc", 1, cudaErrorNotSupported);
  submit(store(0, 0));
  stand_in::fail_call("cudaLaunchHostFunc", 1, cudaErrorNotSupported);
  submit(load(1, 1));
  settle();
  ASSERT_EQ(done.size(), 2u);
  for (const auto& x : done) {
    EXPECT_EQ(x.result, copy_result::failed);
    EXPECT_THAT(x.text, ::testing::HasSubstr("cudaLaunchHostFunc"));
    EXPECT_EQ(x.bytes, 0u);
  }
  EXPECT_TRUE(holds(slot(0), 0));
  EXPECT_TRUE(holds(block(1), 0));
}

} // namespace
} // namespace kvtide::gpu
