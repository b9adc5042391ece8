// SPDX-License-Identifier: Apache-2.0

#include "messages/all.hpp"
#include "messages/plan_bytes.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <gtest/gtest.h>

#include <string>

namespace kvtide {
namespace {

struct config_type : caf::actor_system_config {
  config_type() {
    register_messages(*this);
    set("scheduler.policy", caf::atom("testing"));
  }
};

class PlanBytes : public ::testing::Test {
protected:
  PlanBytes() {
    job load;
    load.id = 1;
    load.kind = job_kind::load;
    load.request = 17;
    load.rows = std::vector<job_row>{{{{"hash", 4}, 2, 99}, 5, 6, {7, 0, 8}}};
    job store;
    store.id = 2;
    begin = {8, {load}, {store}, {0, 2}};
    store.id = 3;
    stores = {8, {store}};
  }

  config_type config;
  caf::actor_system sys{config};
  msg::begin_step begin;
  msg::stores stores;
};

TEST_F(PlanBytes, ComeBackAsTheyWere) {
  const auto bytes = encode_plan(begin, stores, 77);
  EXPECT_EQ(bytes, encode_plan(begin, stores, 77));
  const auto decoded = decode_plan(bytes);
  ASSERT_TRUE(decoded);
  const auto& plan = decoded.value();
  EXPECT_EQ(plan.epoch, 77u);
  EXPECT_EQ(plan.begin.step, 8u);
  ASSERT_EQ(plan.begin.loads.size(), 1u);
  const auto& load = plan.begin.loads[0];
  EXPECT_EQ(load.id, 1u);
  EXPECT_EQ(load.kind, job_kind::load);
  EXPECT_EQ(load.request, 17u);
  ASSERT_EQ(load.rows.size(), 1u);
  EXPECT_EQ(load.rows[0].key, (chunk_key{{"hash", 4}, 2, 99}));
  EXPECT_EQ(load.rows[0].slot, 5u);
  EXPECT_EQ(load.rows[0].chunk, 6u);
  EXPECT_EQ(load.rows[0].blocks, (std::vector<block_id>{7, 0, 8}));
  EXPECT_EQ(plan.begin.flushed_stores.size(), 1u);
  EXPECT_EQ(plan.begin.flush, (std::vector<job_id>{0, 2}));
  ASSERT_EQ(plan.stores.jobs.size(), 1u);
  EXPECT_EQ(plan.stores.jobs[0].id, 3u);
  // What was decoded says the same.
  EXPECT_EQ(encode_plan(plan.begin, plan.stores, plan.epoch), bytes);
}

TEST_F(PlanBytes, EveryCutAndEveryFlippedBitIsNoticed) {
  const auto bytes = encode_plan(begin, stores);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto cut = decode_plan(bytes.substr(0, i));
    ASSERT_FALSE(cut);
    EXPECT_NE(cut.failure().text, "");
    for (auto bit = 0; bit < 8; ++bit) {
      auto flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      EXPECT_FALSE(decode_plan(flipped));
    }
  }
}

TEST_F(PlanBytes, AnotherVersionIsNamedAsTheReason) {
  auto bytes = encode_plan(begin, stores);
  bytes[0] = static_cast<char>(bytes[0] + 1);
  const auto decoded = decode_plan(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.failure().code, ec::unsupported);
}

TEST_F(PlanBytes, ContradictionsAreRefused) {
  auto other_step = stores;
  other_step.step = 9;
  EXPECT_FALSE(decode_plan(encode_plan(begin, other_step)));
  auto store_as_load = begin;
  store_as_load.loads[0].kind = job_kind::store;
  EXPECT_FALSE(decode_plan(encode_plan(store_as_load, stores)));
  auto unknown_kind = stores;
  unknown_kind.jobs[0].kind = static_cast<job_kind>(7);
  EXPECT_FALSE(decode_plan(encode_plan(begin, unknown_kind)));
}

} // namespace
} // namespace kvtide
