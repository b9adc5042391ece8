// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/bounce_buffer.hpp"
#include "gpu/fragments.hpp"
#include "tests/gpu/cuda_test.hpp"

#include <random>

namespace kvtide::gpu {
namespace {

class cuda_bounce_buffer : public cuda_test {
protected:
  static std::uint64_t off(const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) % 16;
  }
};

/// Wide accesses stay possible, nothing overlaps, and all fits.
TEST_F(cuda_bounce_buffer, TakesAsMuchAsItSays) {
  constexpr auto size = std::uint64_t{3};
  constexpr auto count = bounce_buffer::most_fragments;
  const auto buffer = value_of(bounce_buffer::make(size * count));
  EXPECT_EQ(buffer.room(), size * count);
  auto host = std::vector<std::byte>(size * count);
  auto there = std::vector<std::byte>(32 * count);
  for (const auto kind : {job_kind::store, job_kind::load}) {
    auto random = std::mt19937{1};
    auto parts = std::vector<fragment>{};
    for (std::size_t i = 0; i < count; ++i)
      parts.push_back(part(kind, there.data() + 32 * i + random() % 16,
                           host.data() + size * i, size,
                           static_cast<std::uint32_t>(i)));
    const auto before = parts;
    const auto moved = buffer.redirect(kind, parts);
    ASSERT_EQ(moved->parts.size(), count);
    const std::byte* end = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& x = parts[i];
      const auto& move = moved->parts[i];
      const auto stores = kind == job_kind::store;
      const auto* here = static_cast<const std::byte*>(stores ? x.dst : x.src);
      EXPECT_EQ(stores ? x.src : x.dst, stores ? before[i].src : before[i].dst);
      EXPECT_EQ(off(x.dst), off(x.src));
      EXPECT_EQ(stores ? move.src : move.dst, here);
      EXPECT_EQ(stores ? move.dst : move.src,
                stores ? before[i].dst : before[i].src);
      EXPECT_EQ(move.bytes, size);
      EXPECT_EQ(move.row, i);
      EXPECT_GE(here, end);
      end = here + size;
    }
    // All of it is the buffer's.
    EXPECT_NE(stand_in::device_view(buffer.device_address(end - 1), 1),
              nullptr);
  }
}

TEST_F(cuda_bounce_buffer, IsSeenByTheDevice) {
  const auto buffer = value_of(bounce_buffer::make(100));
  auto parts = std::vector<fragment>(1);
  parts[0].bytes = 100;
  (void)buffer.redirect(job_kind::store, parts);
  EXPECT_EQ(stand_in::device_view(buffer.device_address(parts[0].dst), 100),
            parts[0].dst);
}

} // namespace
} // namespace kvtide::gpu
