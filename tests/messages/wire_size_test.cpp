// SPDX-License-Identifier: Apache-2.0

/// @file
/// How many bytes a step of 1,024 requests takes on its way to a rank in
/// another process. Blocks and slots are scattered as in a pool that has been
/// in use for long, and hashes have no pattern. What follows from the sizes is
/// in the names; the figures themselves are recorded as properties of the tests
/// (`--gtest_output=json`).

#include "messages/gpu_worker.hpp"
#include "messages/step_bytes.hpp"
#include "tests/messages/made_up_jobs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace kvtide {
namespace {

constexpr std::size_t limit = std::size_t{64} * 1024;
constexpr std::size_t requests = 1024;
constexpr std::uint32_t pool_blocks = 1 << 16; // 1 M tokens of 16.
constexpr std::uint32_t pool_slots = 1 << 20;

struct step_of {
  std::size_t crossing = 0;
  std::size_t hash_bytes = 0;
  std::size_t blocks_per_chunk = 0;
};

struct wire_size {
  /// Of `begin_step` and all of `stores`.
  std::size_t all = 0;
  /// Of the longest message.
  std::size_t longest = 0;
};

/// Of a step in which `x.crossing` of the requests, spread evenly, store one
/// chunk each.
wire_size measure(const step_of& x) {
  std::mt19937_64 rng{x.crossing + x.hash_bytes + x.blocks_per_chunk};
  const auto below = [&rng](std::uint32_t end) {
    return static_cast<std::uint32_t>(rng() % end);
  };
  auto stores = msg::stores{123'456, {}};
  job_id id = 7'654'321;
  const auto begin = msg::begin_step{stores.step, {}, {}, {}, id - 3000};
  for (std::size_t i = 0; i < x.crossing; ++i) {
    auto row = job_row{{some_hash(rng, x.hash_bytes), 0, 0x1234'5678'9ABC'DEF0},
                       below(pool_slots),
                       below(4096),
                       {}};
    for (std::size_t n = 0; n < x.blocks_per_chunk; ++n)
      row.blocks.push_back(1 + below(pool_blocks - 1));
    job work;
    work.id = id++;
    work.request = 500'000 + i * (requests / x.crossing) + below(3);
    work.rows = std::vector<job_row>{row};
    stores.jobs.push_back(work);
  }
  auto result = wire_size{};
  result.all = result.longest = to_bytes(begin).size();
  for (const auto& part : in_parts(stores)) {
    const auto size = to_bytes(part).size();
    result.all += size;
    result.longest = std::max(result.longest, size);
  }
  ::testing::Test::RecordProperty(
    std::to_string(x.crossing) + "_of_" + std::to_string(requests) + "_hash_"
      + std::to_string(x.hash_bytes) + "_blocks_"
      + std::to_string(x.blocks_per_chunk),
    std::to_string(result.all) + " bytes, longest message "
      + std::to_string(result.longest));
  return result;
}

TEST(WireSize, AStepInWhichOneIn16StoresTakesFewKiB) {
  for (const std::size_t crossing : {8, 64})
    for (const std::size_t hash : {16, 32, 64})
      for (const std::size_t blocks : {1, 8}) {
        const auto size = measure({crossing, hash, blocks});
        EXPECT_LT(size.all, crossing * (hash + 2 * blocks + 12) + 100);
        EXPECT_LT(size.all, std::size_t{8} * 1024);
      }
}

TEST(WireSize, AStepInWhichAllStoreStaysUnder64KiBWithHashesOf32Bytes) {
  for (const std::size_t hash : {16, 32})
    for (const std::size_t blocks : {1, 8}) {
      const auto size = measure({requests, hash, blocks});
      EXPECT_LT(size.all, limit);
      EXPECT_LE(size.longest, msg::most_bytes_of_stores);
    }
}

TEST(WireSize, HashesOf64BytesAloneTake64KiBSoOnlyEachMessageStaysUnderIt) {
  for (const std::size_t blocks : {1, 8}) {
    const auto size = measure({requests, 64, blocks});
    EXPECT_GT(size.all, limit);
    EXPECT_LE(size.longest, msg::most_bytes_of_stores);
  }
}

/// One request's chunks, in one job.
job long_job(std::size_t blocks, std::size_t blocks_per_chunk,
             std::size_t hash_bytes) {
  std::mt19937_64 rng{blocks_per_chunk + hash_bytes};
  std::vector<block_id> all(blocks);
  std::iota(all.begin(), all.end(), block_id{1});
  std::shuffle(all.begin(), all.end(), rng);
  std::vector<job_row> rows(blocks / blocks_per_chunk);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto* first = all.data() + i * blocks_per_chunk;
    rows[i] = {{some_hash(rng, hash_bytes), 0, 99},
               static_cast<slot_id>(rng() % pool_slots),
               static_cast<std::uint32_t>(i),
               {first, first + blocks_per_chunk}};
  }
  auto result = job{};
  result.kind = job_kind::load;
  result.rows = std::move(rows);
  return result;
}

TEST(WireSize, CNT_02_AJobOf60000ScatteredBlocksTakesLessThan4MiB) {
  for (const std::size_t hash : {16, 32, 64})
    for (const std::size_t blocks : {1, 8}) {
      const auto step
        = msg::begin_step{1, {long_job(60'000, blocks, hash)}, {}, {}};
      const auto size = to_bytes(step).size();
      EXPECT_LT(size, std::size_t{4} * 1024 * 1024);
      RecordProperty("hash_" + std::to_string(hash) + "_blocks_"
                       + std::to_string(blocks),
                     std::to_string(size));
      msg::begin_step back;
      ASSERT_TRUE(from_bytes(to_bytes(step), back));
      EXPECT_EQ(back.loads, step.loads);
    }
}

} // namespace
} // namespace kvtide
