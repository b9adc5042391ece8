// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_pool_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <utility>
#include <vector>

namespace kvtide::gpu {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// 64 slots of 320 bytes end on a page of 4 KiB: 20480 bytes.
constexpr std::uint64_t slot = 320;
constexpr std::uint64_t piece = 64 * slot;

/// A driver that refuses when it is told to, and says so to the caller alone.
struct fake_driver {
  std::vector<std::byte*> added;
  /// In the order in which they came.
  std::vector<std::byte*> removed;
  std::vector<std::uint64_t> sizes;
  std::uint64_t largest = std::uint64_t{64} << 30;
  /// Counted from 1; 0 means none.
  std::size_t refused_call = 0;
  bool gone = false;
};

class fake_registrar : public memory_registrar {
public:
  explicit fake_registrar(fake_driver& driver) : driver_(driver) {
    // nop
  }

  ~fake_registrar() override {
    driver_.gone = true;
  }

  error add(std::byte* first, std::uint64_t bytes) override {
    driver_.sizes.push_back(bytes);
    if (bytes > driver_.largest || driver_.sizes.size() == driver_.refused_call)
      return {ec::device_failure, "the driver says \"out of memory\""};
    driver_.added.push_back(first);
    return {};
  }

  void remove(std::byte* first) noexcept override {
    *first = std::byte{1}; // Ends the test if it is not mapped any more.
    driver_.removed.push_back(first);
  }

private:
  fake_driver& driver_;
};

/// A pool of 257 slots in five pieces, four of them full.
class host_pool_memory_test : public ::testing::Test {
protected:
  host_pool_memory_test() : tensor_(8 * 72) {
    memory_.tensors.push_back(
      {tensor_.data(), tensor_.size(), memory_kind::host, 8, 72, 72});
    memory_.references.push_back({0, 0, 0, 0, 32});
    memory_.references.push_back({0, 1, 0, 32, 40});
    config_.host_bytes = 4 * piece + slot + 7;
    config_.largest_piece = piece + slot;
    config_.registrar = std::make_shared<fake_registrar>(driver_);
  }

  [[nodiscard]] geometry shape() const {
    return make_geometry(memory_, 1, 4, memory_domain::host_only).value();
  }

  result<slot_pool> open() {
    return pool_->open(shape(), memory_, config_);
  }

  std::vector<std::byte> tensor_;
  kv_memory memory_;
  host_pool_config config_;
  fake_driver driver_;
  std::unique_ptr<host_pool_memory> pool_
    = std::make_unique<host_pool_memory>();
};

TEST_F(host_pool_memory_test, MEM_01_registers_pieces_of_whole_slots_in_order) {
  driver_.largest = piece; // All at once would be refused.
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.failure().text;
  auto* base = opened.value().base;
  EXPECT_EQ(opened.value().slots, 257u);
  EXPECT_THAT(driver_.sizes, ElementsAre(piece, piece, piece, piece, slot));
  EXPECT_THAT(driver_.added, ElementsAre(base, base + piece, base + 2 * piece,
                                         base + 3 * piece, base + 4 * piece));
  const auto status = pool_->status();
  EXPECT_TRUE(status.pinned);
  EXPECT_EQ(status.pieces.count(), 5u);
  EXPECT_THAT(status.notes, IsEmpty());
}

TEST_F(host_pool_memory_test, MEM_01_a_refusal_in_the_middle_leaves_nothing) {
  driver_.refused_call = 3;
  const auto refused = open();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::device_failure);
  EXPECT_THAT(refused.failure().text, HasSubstr("piece 3 of 5"));
  EXPECT_THAT(refused.failure().text, HasSubstr("20480 bytes"));
  EXPECT_THAT(refused.failure().text,
              HasSubstr("the driver says \"out of memory\""));
  EXPECT_THAT(refused.failure().text, HasSubstr("lower host_bytes"));
  EXPECT_THAT(refused.failure().text, HasSubstr("not pinned"));
  EXPECT_THAT(driver_.removed, ElementsAre(driver_.added[1], driver_.added[0]));
  EXPECT_EQ(driver_.sizes.size(), 3u); // Nothing behind the refused one.
  EXPECT_EQ(pool_->status().slots, 0u);
}

TEST_F(host_pool_memory_test, MEM_01_no_later_call_sees_a_refusal) {
  driver_.refused_call = 3;
  ASSERT_FALSE(open().ok());
  const auto opened = open(); // The driver has room now.
  ASSERT_TRUE(opened.ok()) << opened.failure().text;
  EXPECT_TRUE(pool_->status().pinned);
  EXPECT_THAT(pool_->status().notes, IsEmpty());
  EXPECT_EQ(driver_.added.size(), 2u + 5u);
}

TEST_F(host_pool_memory_test, MEM_01_goes_on_without_pinning_if_allowed) {
  config_.allow_pageable = true;
  driver_.refused_call = 3;
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.failure().text;
  EXPECT_EQ(opened.value().slots, 257u);
  opened.value().base[257 * slot - 1] = std::byte{7}; // It is memory.
  EXPECT_THAT(driver_.removed, ElementsAre(driver_.added[1], driver_.added[0]));
  const auto status = pool_->status();
  EXPECT_FALSE(status.pinned);
  EXPECT_EQ(status.pieces.count(), 0u);
  ASSERT_EQ(status.notes.size(), 1u);
  EXPECT_THAT(status.notes[0], HasSubstr("not pinned"));
  EXPECT_THAT(status.notes[0], HasSubstr("piece 3 of 5"));
  EXPECT_THAT(to_string(status), HasSubstr("not pinned"));
  // The next rank gets the same pool, and nobody asks the driver again.
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(driver_.sizes.size(), 3u);
  pool_.reset();
  EXPECT_EQ(driver_.removed.size(), 2u);
}

TEST_F(host_pool_memory_test, MEM_01_slots_that_no_piece_can_hold_are_refused) {
  config_.largest_piece = piece - 1;
  const auto refused = open();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::invalid_options);
  EXPECT_THAT(refused.failure().text, HasSubstr("64 slots of 320 bytes"));
  EXPECT_THAT(driver_.sizes, IsEmpty());
  config_.allow_pageable = true;
  ASSERT_TRUE(open().ok());
  EXPECT_FALSE(pool_->status().pinned);
}

/// Some drivers pin without asking for the limit, so it stops nothing; but it
/// is named where it may be the reason.
TEST_F(host_pool_memory_test, MEM_01_a_low_lock_limit_is_only_a_hint) {
  ::rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  auto lowered = before;
  lowered.rlim_cur = 4'096;
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &lowered), 0);
  driver_.refused_call = 1;
  const auto refused = open();
  const auto opened = open();
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.failure().text, HasSubstr("RLIMIT_MEMLOCK"));
  EXPECT_THAT(refused.failure().text, HasSubstr("4096 bytes"));
  ASSERT_TRUE(opened.ok()) << opened.failure().text;
  EXPECT_TRUE(pool_->status().pinned);
  EXPECT_THAT(pool_->status().notes, IsEmpty());
}

TEST_F(host_pool_memory_test, UnregistersLastFirstAndBeforeTheMemoryIsGone) {
  ASSERT_TRUE(open().ok());
  pool_.reset(); // `remove` writes to the memory.
  auto reversed = driver_.added;
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(driver_.removed, reversed);
}

TEST_F(host_pool_memory_test, KeepsTheRegistrarOfARankThatIsGone) {
  ASSERT_TRUE(open().ok());
  config_.registrar.reset();
  EXPECT_FALSE(driver_.gone);
  ASSERT_TRUE(open().ok());
  EXPECT_TRUE(pool_->status().pinned);
  pool_.reset();
  EXPECT_EQ(driver_.removed.size(), 5u);
  EXPECT_TRUE(driver_.gone);
}

TEST_F(host_pool_memory_test, IsRegisteredOnceForRanksThatComeTogether) {
  std::vector<std::byte*> bases(4);
  std::vector<std::thread> ranks;
  for (auto& base : bases)
    ranks.emplace_back([this, &base] { base = open().value().base; });
  for (auto& rank : ranks)
    rank.join();
  EXPECT_EQ(driver_.added.size(), 5u);
  EXPECT_THAT(bases, Each(driver_.added[0]));
}

/// G5: what `append_fragments` lets out never spans two registrations.
TEST_F(host_pool_memory_test, NoFragmentSpansTwoPieces) {
  const auto pool = open().value();
  const auto pieces = pool_->status().pieces;
  ASSERT_EQ(pieces.count(), 5u);
  for (slot_id id = 0; id < pool.slots; ++id) {
    job_row row;
    row.slot = id;
    row.blocks = {0, 1, 2, 7};
    std::vector<fragment> out;
    const auto refused
      = shape().append_fragments(job_kind::store, row, 0, 0, pool, out);
    ASSERT_EQ(refused.code, ec::none) << refused.text;
    ASSERT_THAT(out, Not(IsEmpty()));
    for (const auto& x : out) {
      // All pieces but the last have the same size.
      const auto first = static_cast<std::uint64_t>(
        static_cast<const std::byte*>(x.dst) - pool.base);
      EXPECT_EQ(first / pieces.piece_bytes(),
                (first + x.bytes - 1) / pieces.piece_bytes());
    }
  }
}

TEST_F(host_pool_memory_test, SaysWhatWasAskedForAndWhatIsInUse) {
  EXPECT_EQ(pool_->status().asked_bytes, 0u);
  ASSERT_TRUE(open().ok());
  const auto status = pool_->status();
  EXPECT_EQ(status.asked_bytes, 4 * piece + slot + 7);
  EXPECT_EQ(status.slots, 257u);
  EXPECT_EQ(status.slot_bytes, slot);
  EXPECT_EQ(status.memory.bytes, 257 * slot);
  EXPECT_EQ(status.memory.mapped_bytes % status.memory.page_bytes, 0u);
  const auto text = to_string(status);
  EXPECT_THAT(text, HasSubstr("82240 bytes"));
  EXPECT_THAT(text, HasSubstr("of 82247 asked for"));
  EXPECT_THAT(text, HasSubstr("257 slots of 320 bytes"));
  EXPECT_THAT(text, HasSubstr("pinned in 5 pieces"));
}

TEST_F(host_pool_memory_test, WithoutARegistrarIsNotPinned) {
  config_.registrar.reset();
  ASSERT_TRUE(open().ok());
  EXPECT_FALSE(pool_->status().pinned);
  EXPECT_THAT(pool_->status().notes, IsEmpty());
}

TEST_F(host_pool_memory_test, OfNoBytesRegistersNothing) {
  config_.host_bytes = 0;
  const auto opened = open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened.value().slots, 0u);
  EXPECT_THAT(driver_.sizes, IsEmpty());
}

TEST_F(host_pool_memory_test, RefusesLessThanASlotAndAnotherForm) {
  config_.host_bytes = slot - 1;
  const auto small = open();
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.failure().code, ec::invalid_options);
  config_.host_bytes = slot;
  ASSERT_TRUE(open().ok());
  std::swap(memory_.references[0], memory_.references[1]);
  const auto other = open();
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.failure().code, ec::invalid_argument);
}

TEST_F(host_pool_memory_test, PassesOnHowMemoryIsAskedFor) {
  config_.memory.reserve = true;
  ASSERT_TRUE(open().ok());
  EXPECT_TRUE(pool_->status().memory.reserved);
  pool_ = std::make_unique<host_pool_memory>();
  config_.memory.limit_bytes = piece;
  const auto refused = open();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, ec::out_of_memory);
}

} // namespace
} // namespace kvtide::gpu
