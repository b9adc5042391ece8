// SPDX-License-Identifier: Apache-2.0

#include "core/store_writer.hpp"

#include <gtest/gtest.h>

namespace kvtide::core {
namespace {

TEST(StoreWriter, SingleWriterWritesAll) {
  EXPECT_TRUE(writes_store(0, 0, 1));
  EXPECT_TRUE(writes_store(7, 0, 1));
}

TEST(StoreWriter, WritersShareJobsOut) {
  for (job_id id = 0; id < 9; ++id) {
    auto count = 0;
    for (std::uint32_t writer = 0; writer < 3; ++writer)
      count += writes_store(id, writer, 3) ? 1 : 0;
    EXPECT_EQ(count, 1);
  }
}

TEST(StoreWriter, ReplicaNeverWrites) {
  for (job_id id = 0; id < 4; ++id) {
    EXPECT_FALSE(writes_store(id, 1, 1));
    EXPECT_FALSE(writes_store(id, 2, 2));
  }
}

} // namespace
} // namespace kvtide::core
