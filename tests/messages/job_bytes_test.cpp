// SPDX-License-Identifier: Apache-2.0

#include "messages/job_bytes.hpp"
#include "tests/messages/made_up_jobs.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace kvtide {
namespace {

std::string bytes_of(const std::vector<job>& jobs) {
  std::string result;
  auto out = byte_writer{result};
  job_writer{out}.write(jobs);
  return result;
}

/// Few enough for something to be done at each bit.
std::string some_bytes(std::mt19937_64& rng) {
  for (;;) {
    auto result = bytes_of(wild_jobs(rng, job_kind::store));
    if (result.size() < 300)
      return result;
  }
}

std::vector<job> jobs_of(byte_reader& in) {
  return job_reader{in}.read();
}

/// What the lists themselves take, without what the allocator adds.
std::size_t memory_of(const std::vector<job>& jobs) {
  auto result = jobs.capacity() * sizeof(job);
  for (const auto& x : jobs) {
    result += x.rows.size() * sizeof(job_row);
    for (const auto& row : x.rows)
      result += row.blocks.capacity() * sizeof(block_id);
  }
  return result;
}

TEST(JobBytes, ComeBackAsTheyWere) {
  std::mt19937_64 rng{1};
  for (int i = 0; i < 500; ++i) {
    const auto loads = wild_jobs(rng, job_kind::load);
    const auto stores = wild_jobs(rng, job_kind::store);
    std::string bytes;
    auto out = byte_writer{bytes};
    auto writer = job_writer{out};
    writer.write(loads);
    writer.write(stores);
    auto in = byte_reader{bytes};
    auto reader = job_reader{in};
    ASSERT_EQ(reader.read(), loads);
    ASSERT_EQ(reader.read(), stores);
    ASSERT_FALSE(in.failed());
    ASSERT_EQ(in.remaining(), 0u);
    ASSERT_EQ(bytes_of(loads), bytes_of(loads));
  }
}

TEST(JobBytes, AreNeverMoreThanWasSaid) {
  std::mt19937_64 rng{2};
  for (int i = 0; i < 500; ++i) {
    const auto jobs = wild_jobs(rng, job_kind::store);
    std::size_t most = 10; // The number of jobs.
    for (const auto& x : jobs)
      most += most_bytes_of(x);
    ASSERT_LE(bytes_of(jobs).size(), most);
  }
}

TEST(JobBytes, WhatCountsUpTakesNoBytes) {
  std::mt19937_64 rng{3};
  std::vector<job> jobs;
  for (std::uint32_t i = 0; i < 100; ++i) {
    job work;
    work.id = 1000 + i;
    work.request = 2000 + i;
    work.rows = std::vector<job_row>{
      {{some_hash(rng, 32), 0, 99}, 300 + i, 400 + i, {500 + i}}};
    jobs.push_back(work);
  }
  const auto bytes = bytes_of(jobs);
  // Two bytes of flags, and a slot and a block that are as expected.
  EXPECT_LE(bytes.size(), 100 * (32 + 4) + 40u);
}

TEST(JobBytes, AKindThatDoesNotExistIsNotRead) {
  job work;
  work.kind = static_cast<job_kind>(7);
  const auto bytes = bytes_of({work});
  auto in = byte_reader{bytes};
  EXPECT_TRUE(jobs_of(in).empty());
  EXPECT_TRUE(in.failed());
}

TEST(JobBytes, EveryCutIsAnError) {
  std::mt19937_64 rng{4};
  for (int i = 0; i < 30; ++i) {
    const auto bytes = some_bytes(rng);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      auto in = byte_reader{std::string_view{bytes}.substr(0, size)};
      ASSERT_TRUE(jobs_of(in).empty());
      ASSERT_TRUE(in.failed());
    }
  }
}

TEST(JobBytes, EveryFlippedBitIsAnErrorOrOtherJobsOfBoundedSize) {
  std::mt19937_64 rng{5};
  std::size_t errors = 0;
  std::size_t others = 0;
  for (int i = 0; i < 30; ++i) {
    const auto bytes = some_bytes(rng);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      auto flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      auto in = byte_reader{flipped};
      const auto jobs = jobs_of(in);
      ASSERT_LE(memory_of(jobs), 64 * bytes.size());
      if (in.failed()) {
        ASSERT_TRUE(jobs.empty());
        ++errors;
        continue;
      }
      ++others;
      const auto again = bytes_of(jobs); // What was read can be written.
      auto back = byte_reader{again};
      ASSERT_EQ(jobs_of(back), jobs);
    }
  }
  EXPECT_GT(errors, 0u);
  EXPECT_GT(others, 0u);
}

TEST(JobBytes, BytesWithoutSenseTakeNoMoreMemoryThanTheirLengthAllows) {
  std::mt19937_64 rng{6};
  for (int i = 0; i < 5000; ++i) {
    std::string bytes(1 + rng() % 200, '\0');
    const auto small = rng() % 2 > 0; // Small numbers get further.
    for (auto& x : bytes)
      x = static_cast<char>(small && rng() % 4 > 0 ? rng() % 16 : rng());
    auto in = byte_reader{bytes};
    ASSERT_LE(memory_of(jobs_of(in)), 64 * bytes.size());
  }
}

TEST(JobBytes, ListsThatClaimToBeLongAreRefusedUnread) {
  // 2^40 jobs; one job of 2^40 runs; one run of 2^40 rows; 2^31 blocks per row.
  const std::string bombs[] = {
    std::string{"\x80\x80\x80\x80\x80\x20", 6},
    std::string{"\x01\xF0\x80\x80\x80\x80\x80\x20", 8},
    std::string{"\x01\x10\x09\x80\x80\x80\x80\x80\x20\x40", 10},
    std::string{"\x01\x10\x18\x40\x80\x80\x80\x80\x08", 9},
    std::string{"\x01\x10\x98\x40\x80\x80\x80\x80\x08", 9},
  };
  for (const auto& x : bombs) {
    const auto bytes = x + std::string(64, '\1');
    auto in = byte_reader{bytes};
    EXPECT_TRUE(jobs_of(in).empty());
    EXPECT_TRUE(in.failed());
  }
}

} // namespace
} // namespace kvtide
