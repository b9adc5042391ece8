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
  std::vector<msg::search_keys> searches;
  std::vector<msg::store_offer> stores;
  std::vector<msg::load_offer> loads;
};

scheduler_request_port::behavior_type
fake_scheduler(scheduler_request_port::stateful_pointer<fake_state>,
               heard* log) {
  return {
    [=](const msg::search_keys& x) { log->searches.push_back(x); },
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

  static core::request_update update(std::uint8_t hashes,
                                     std::vector<block_id> blocks) {
    auto out = core::request_update{};
    for (std::uint8_t x = 0; x < hashes; ++x)
      out.hashes.emplace_back(&x, 1);
    out.appended.push_back(std::move(blocks));
    return out;
  }

  heard log;
  std::shared_ptr<const core::layout> shape;
  scheduler_request_port scheduler;
  request_actor uut;
};

TEST_F(Request, AnswersWithItsKeys) {
  tell(msg::prepare_search{1, update(2, {})});
  ASSERT_EQ(log.searches.size(), 1u);
  EXPECT_EQ(log.searches[0].request, 7u);
  ASSERT_EQ(log.searches[0].keys.size(), 1u);
  EXPECT_EQ(log.searches[0].keys[0].size(), 2u);
}

TEST_F(Request, OffersWhatItCanStore) {
  tell(msg::plan_store{1, update(3, {1, 2}), 12, {0}});
  ASSERT_EQ(log.stores.size(), 1u);
  const auto& offer = log.stores[0];
  EXPECT_EQ(offer.offer.request, 7u);
  EXPECT_EQ(offer.offer.candidates.size(), 2u);
  EXPECT_THAT(offer.blocks, ElementsAre(ElementsAre(1u), ElementsAre(2u)));
  EXPECT_THAT(offer.storable, ElementsAre(2u));
  EXPECT_EQ(offer.offer.keys.at(0).size(), 3u);
}

TEST_F(Request, AnswersEvenIfItHasNothingToStore) {
  tell(msg::plan_store{1, update(3, {}), 12, {0}});
  ASSERT_EQ(log.stores.size(), 1u);
  EXPECT_THAT(log.stores[0].offer.candidates, IsEmpty());
  EXPECT_EQ(log.stores[0].offer.keys.at(0).size(), 3u);
}

TEST_F(Request, SaysWhatALoadReads) {
  tell(msg::plan_load{1, update(2, {}), 8, {{4, 5, 6}}, {{1, 0, 0}}});
  ASSERT_EQ(log.loads.size(), 1u);
  ASSERT_EQ(log.loads[0].rows.size(), 1u);
  EXPECT_EQ(log.loads[0].rows[0].chunk, 1u);
  EXPECT_THAT(log.loads[0].rows[0].blocks, ElementsAre(5u));
  EXPECT_THAT(log.loads[0].first_block, ElementsAre(1u));
}

TEST_F(Request, ForgetsKeysThatWereRolledBack) {
  tell(msg::plan_store{1, update(3, {1, 2, 3}), 12, {0}});
  tell(msg::shrink{{}, 7});
  tell(msg::plan_store{2, {}, 12, {0}});
  EXPECT_THAT(log.stores.back().storable, ElementsAre(1u));
}

TEST_F(Request, AnswersInTheOrderOfTheQuestions) {
  world.send(uut, msg::plan_store{1, update(1, {1}), 4, {0}});
  world.send(uut, msg::plan_store{2, update(0, {2}), 4, {1}});
  world.run();
  ASSERT_EQ(log.stores.size(), 2u);
  EXPECT_EQ(log.stores[0].offer.candidates.size(), 1u);
  EXPECT_EQ(log.stores[1].offer.candidates.size(), 0u);
}

TEST_F(Request, EndsWhenItIsRetired) {
  tell(msg::retire{});
  tell(msg::prepare_search{});
  EXPECT_THAT(log.searches, IsEmpty());
}

} // namespace
} // namespace kvtide
