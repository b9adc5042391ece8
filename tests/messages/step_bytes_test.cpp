// SPDX-License-Identifier: Apache-2.0

#include "messages/all.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/step_bytes.hpp"
#include "tests/messages/made_up_jobs.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/deep_to_string.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace kvtide {
namespace {

struct config_type : caf::actor_system_config {
  config_type() {
    register_messages(*this);
    set("scheduler.policy", caf::atom("testing"));
  }
};

class StepBytes : public ::testing::Test {
protected:
  msg::begin_step some_step() {
    auto result = msg::begin_step{rng(),
                                  wild_jobs(rng, job_kind::load),
                                  wild_jobs(rng, job_kind::store),
                                  {},
                                  rng() >> 40};
    auto id = result.settled_below;
    for (auto i = rng() % 5; i > 0; --i)
      result.flush.push_back(id += rng() % 3);
    return result;
  }

  msg::stores some_stores() {
    return {rng(), wild_jobs(rng, job_kind::store)};
  }

  static void expect_same(const msg::begin_step& x, const msg::begin_step& y) {
    ASSERT_EQ(x.step, y.step);
    ASSERT_EQ(x.loads, y.loads);
    ASSERT_EQ(x.flushed_stores, y.flushed_stores);
    ASSERT_EQ(x.flush, y.flush);
    ASSERT_EQ(x.settled_below, y.settled_below);
  }

  std::mt19937_64 rng{1};
};

TEST_F(StepBytes, ComeBackAsTheyWere) {
  for (int i = 0; i < 100; ++i) {
    const auto step = some_step();
    const auto bytes = to_bytes(step);
    EXPECT_EQ(bytes, to_bytes(step));
    msg::begin_step back;
    ASSERT_TRUE(from_bytes(bytes, back));
    expect_same(back, step);
    const auto stores = some_stores();
    msg::stores other;
    ASSERT_TRUE(from_bytes(to_bytes(stores), other));
    EXPECT_EQ(other.step, stores.step);
    EXPECT_EQ(other.jobs, stores.jobs);
  }
}

TEST_F(StepBytes, TravelThroughCafAsOneStringThatIsChecked) {
  config_type config;
  caf::actor_system sys{config};
  auto step = some_step();
  auto stores = some_stores();
  std::vector<char> bytes;
  caf::binary_serializer sink{sys, bytes};
  ASSERT_FALSE(sink(step, stores));
  EXPECT_LE(bytes.size(), to_bytes(step).size() + to_bytes(stores).size() + 10);
  msg::begin_step back;
  msg::stores back_stores;
  caf::binary_deserializer source{sys, bytes};
  ASSERT_FALSE(source(back, back_stores));
  EXPECT_EQ(source.remaining(), 0u);
  expect_same(back, step);
  EXPECT_EQ(back_stores.jobs, stores.jobs);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    caf::binary_deserializer cut{sys, bytes.data(), size};
    EXPECT_TRUE(cut(back, back_stores));
  }
  step.step = 8;
  EXPECT_EQ(caf::deep_to_string(step), "begin_step(8)");
}

TEST_F(StepBytes, EveryCutAndWhateverFollowsIsAnError) {
  const auto bytes = to_bytes(some_step());
  msg::begin_step step;
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(from_bytes(std::string_view{bytes}.substr(0, size), step));
  EXPECT_FALSE(from_bytes(bytes + '\0', step));
  msg::stores stores;
  EXPECT_FALSE(from_bytes(to_bytes(some_stores()) + '\0', stores));
}

TEST_F(StepBytes, AListWithAJobOfTheOtherKindIsAnError) {
  auto work = job{};
  work.kind = job_kind::load;
  auto step = msg::begin_step{1, {work}, {}, {}};
  msg::begin_step back;
  EXPECT_TRUE(from_bytes(to_bytes(step), back));
  std::swap(step.loads, step.flushed_stores);
  EXPECT_FALSE(from_bytes(to_bytes(step), back));
  msg::stores stores;
  EXPECT_FALSE(from_bytes(to_bytes(msg::stores{1, {work}}), stores));
}

TEST_F(StepBytes, BytesWithoutSenseDoNoHarm) {
  for (int i = 0; i < 5000; ++i) {
    std::string bytes(rng() % 100, '\0');
    for (auto& x : bytes)
      x = static_cast<char>(rng() % 4 > 0 ? rng() % 16 : rng());
    msg::begin_step step;
    msg::stores stores;
    if (from_bytes(bytes, step)) {
      EXPECT_TRUE(from_bytes(to_bytes(step), step));
    }
    if (from_bytes(bytes, stores)) {
      EXPECT_TRUE(from_bytes(to_bytes(stores), stores));
    }
  }
}

TEST_F(StepBytes, StoresInPartsAreTheSameJobsInOrder) {
  EXPECT_TRUE(in_parts(msg::stores{7, {}}).empty());
  for (int i = 0; i < 30; ++i) {
    auto all = msg::stores{7, {}};
    while (all.jobs.size() < static_cast<std::size_t>(i) * 8)
      for (auto& x : wild_jobs(rng, job_kind::store))
        all.jobs.push_back(x);
    std::vector<job> together;
    for (const auto& part : in_parts(all)) {
      EXPECT_EQ(part.step, 7u);
      EXPECT_FALSE(part.jobs.empty());
      if (part.jobs.size() > 1) {
        EXPECT_LE(to_bytes(part).size(), msg::most_bytes_of_stores);
      }
      together.insert(together.end(), part.jobs.begin(), part.jobs.end());
    }
    EXPECT_EQ(together, all.jobs);
  }
}

} // namespace
} // namespace kvtide
