// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/memcpy_probe.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace kvtide::replay {
namespace {

TEST(MemcpyProbe, KnowsNothingBeforeItRan) {
  EXPECT_EQ((memcpy_probe{geometry{}, 8}.bytes_per_second()), 0);
}

TEST(MemcpyProbe, MeasuresEveryGeometry) {
  const auto measure = [](const geometry& shape, std::size_t blocks) {
    auto uut = memcpy_probe{shape, blocks};
    uut.run();
    EXPECT_GT(uut.bytes_per_second(), 0)
      << shape.fragment_bytes() << ", " << blocks;
  };
  auto shape = geometry{};
  measure(shape, 8);
  shape.head_size = 3;
  shape.tokens_per_block = 7;
  measure(shape, 1'000'000'000);
  // A fragment, then a block, that is larger than all that is copied.
  shape.packed = true;
  shape.layers = 1'024;
  shape.kv_heads = 1'024;
  measure(shape, 8);
  shape.packed = false;
  shape.head_size = 64;
  measure(shape, 8);
}

} // namespace
} // namespace kvtide::replay
