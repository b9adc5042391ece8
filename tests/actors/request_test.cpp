// SPDX-License-Identifier: Apache-2.0

#include "actors/request.hpp"
#include "tests/support/actor_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

struct fake_state {
  static inline const char* name = "fake";
};

/// In the order of arrival, each kind by itself.
struct heard {
  std::vector<msg::store_offer> stores;
  std::vector<msg::load_offer> loads;
};

scheduler_request_port::behavior_type
fake_scheduler(scheduler_request_port::stateful_pointer<fake_state>,
               heard* log) {
  return {
    [=](const msg::store_offer& x) { log->stores.push_back(x); },
    [=](const msg::load_offer& x) { log->loads.push_back(x); },
  };
}

class Request : public test::actor_fixture {
protected:
  Request() {
    auto opts = options{};
    opts.groups.front().tokens_per_block = 4;
    opts.blocks_per_chunk = 1;
    opts.tokens_per_hash = 4;
    shape
      = std::make_shared<const core::layout>(core::make_layout(opts).value());
    scheduler = world.spawn(fake_scheduler, &log);
    uut = world.spawn(request, request_config{7, shape, &core::safe_rules, 12},
                      scheduler);
  }

  template <class Message>
  void tell(Message message) {
    world.send(uut, std::move(message));
    world.run();
  }

  static core::table_update update(std::vector<block_id> blocks) {
    auto out = core::table_update{};
    out.appended.push_back(std::move(blocks));
    return out;
  }

  static core::per_group<core::key_view> keys(std::uint8_t count) {
    auto out = core::key_list{0, 0};
    for (std::uint8_t x = 0; x < count; ++x)
      out.append({&x, 1});
    return {out.view()};
  }

  heard log;
  std::shared_ptr<const core::layout> shape;
  scheduler_request_port scheduler;
  request_actor uut;
};

TEST_F(Request, OffersWhatItCanStore) {
  tell(msg::plan_store{1, update({1, 2}), keys(3), 12, {0}});
  ASSERT_EQ(log.stores.size(), 1u);
  EXPECT_EQ(log.stores[0].request, 7u);
  const auto& plan = log.stores[0].plan;
  ASSERT_EQ(plan.candidates.size(), 2u);
  EXPECT_THAT(plan.candidates[1].blocks, ElementsAre(2u));
  EXPECT_THAT(plan.storable, ElementsAre(2u));
}

TEST_F(Request, AnswersEvenIfItHasNothingToStore) {
  tell(msg::plan_store{1, update({}), keys(3), 12, {0}});
  ASSERT_EQ(log.stores.size(), 1u);
  EXPECT_THAT(log.stores[0].plan.candidates, IsEmpty());
}

TEST_F(Request, SaysWhatALoadReads) {
  tell(msg::plan_load{1, {}, keys(2), 8, {{4, 5, 6}}, {{1, 0, 0}}});
  ASSERT_EQ(log.loads.size(), 1u);
  const auto& rows = log.loads[0].rows;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].chunk, 1u);
  EXPECT_THAT(rows[0].blocks, ElementsAre(5u));
}

TEST_F(Request, TakesWhatItMissedWithALoadToo) {
  tell(msg::plan_load{1, update({1}), keys(1), 4, {{1}}, {{1}}});
  tell(msg::plan_store{2, update({2}), keys(2), 8, {1}});
  const auto& candidates = log.stores.at(0).plan.candidates;
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_THAT(candidates[0].blocks, ElementsAre(2u));
}

TEST_F(Request, AnswersInTheOrderOfTheQuestions) {
  world.send(uut, msg::plan_store{1, update({1}), keys(1), 4, {0}});
  world.send(uut, msg::plan_store{2, update({2}), keys(1), 4, {1}});
  world.run();
  ASSERT_EQ(log.stores.size(), 2u);
  EXPECT_EQ(log.stores[0].plan.candidates.size(), 1u);
  EXPECT_EQ(log.stores[1].plan.candidates.size(), 0u);
}

TEST_F(Request, EndsWhenItIsRetired) {
  tell(msg::retire{});
  tell(msg::plan_store{1, {}, keys(1), 4, {0}});
  EXPECT_THAT(log.stores, IsEmpty());
}

} // namespace
} // namespace kvtide
