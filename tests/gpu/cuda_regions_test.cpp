// SPDX-License-Identifier: Apache-2.0

/// @file
/// G5: what one copy may touch.

#include "tests/gpu/cuda_test.hpp"

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;

class cuda_regions : public cuda_test {
protected:
  /// Two rows that touch on both sides, the second one from byte `at` on.
  copy_job touching(job_id id, job_kind kind, std::size_t at,
                    std::uint32_t second_tensor = 0) {
    auto made = copy_job{};
    made.id = id;
    made.kind = kind;
    made.fragments
      = {part(kind, block(0) + at - unit, slot(0) + at - unit, unit, 0, 0),
         part(kind, block(0) + at, slot(0) + at, unit, 1, second_tensor)};
    return made;
  }

  static std::uint64_t copies() {
    return stand_in::calls("cudaMemcpyAsync");
  }
};

TEST_F(cuda_regions, G5NeighboursAreOneCopy) {
  make();
  submit(touching(0, job_kind::store, page));
  EXPECT_EQ(copies(), 1u);
}

TEST_F(cuda_regions, G5NoCopySpansTwoRegistrations) {
  make_memory({page, page});
  for (const auto path :
       {copy_path::plain, copy_path::batch, copy_path::kernel}) {
    engine.reset();
    make([path](cuda_engine_config& x) { x.path = path; });
    const auto before = copies();
    fill(block(0) + page - unit, 7, 2 * unit);
    fill(slot(0) + page - unit, 0, 2 * unit);
    submit(touching(0, job_kind::store, page));
    EXPECT_EQ(copies() - before, path == copy_path::plain ? 2u : 0u);
    settle();
    EXPECT_EQ(done.back().text, "");
    EXPECT_TRUE(holds(slot(0) + page - unit, 7, 2 * unit));
    fill(block(0) + page - unit, 0, 2 * unit);
    submit(touching(1, job_kind::load, page));
    settle();
    EXPECT_EQ(done.back().text, "");
    EXPECT_TRUE(holds(block(0) + page - unit, 7, 2 * unit));
  }
}

TEST_F(cuda_regions, G5NoCopySpansTwoTensors) {
  make();
  submit(touching(0, job_kind::store, page, 1));
  EXPECT_EQ(copies(), 2u);
  settle();
  submit(touching(1, job_kind::load, page, 1));
  EXPECT_EQ(copies(), 4u);
}

/// The kernel uses addresses of the device, and those alone.
TEST_F(cuda_regions, G5AKernelSeesThePoolWhereTheDeviceDoes) {
  make([](cuda_engine_config& x) { x.path = copy_path::kernel; });
  ASSERT_NE(pool->device_address(slot(0), 1), slot(0));
  fill(block(0), 7);
  fill(slot(1), 8);
  submit(store(0, 0));
  submit(load(1, 1));
  settle();
  EXPECT_TRUE(holds(slot(0), 7));
  EXPECT_TRUE(holds(block(1), 8));
  EXPECT_EQ(copies() + stand_in::calls("cudaMemcpyBatchAsync"), 0u);
}

} // namespace
} // namespace kvtide::gpu
