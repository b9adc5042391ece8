// SPDX-License-Identifier: Apache-2.0

#include "actors/cache_manager.hpp"
#include "tests/support/actor_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

struct fake_state {
  static inline const char* name = "fake";
};

struct heard {
  std::vector<msg::search_result> searches;
  std::vector<msg::stores_prepared> stores;
  std::vector<msg::load_prepared> loads;
  std::vector<msg::rolled_back> rolled_back;
  std::vector<msg::cache_events> events;
  std::vector<msg::explained> explained;
  msg::pool_report report;
  msg::key_states keys;
};

scheduler_cache_port::behavior_type
fake_scheduler(scheduler_cache_port::stateful_pointer<fake_state>, heard* log) {
  return {
    [=](const msg::search_result& x) { log->searches.push_back(x); },
    [=](const msg::stores_prepared& x) { log->stores.push_back(x); },
    [=](const msg::load_prepared& x) { log->loads.push_back(x); },
    [=](const msg::rolled_back& x) { log->rolled_back.push_back(x); },
    [=](const msg::cache_events& x) { log->events.push_back(x); },
    [=](const msg::pool_report& x) { log->report = x; },
    [=](const msg::explained& x) { log->explained.push_back(x); },
    [=](const msg::key_states& x) { log->keys = x; },
  };
}

class CacheManager : public test::actor_fixture {
protected:
  CacheManager() {
    auto opts = options{};
    opts.cache_events = true;
    opts.groups.front().tokens_per_block = 4;
    opts.blocks_per_chunk = 1;
    opts.tokens_per_hash = 4;
    const auto shape
      = std::make_shared<const core::layout>(core::make_layout(opts).value());
    scheduler = world.spawn(fake_scheduler, &log);
    uut = world.spawn(cache_manager, cache_manager_config{shape, opts});
  }

  template <class Message>
  void tell(Message message) {
    world.send_as(scheduler, uut, std::move(message));
    world.run();
  }

  /// All chunks of a text, one per letter.
  static core::key_view view(const std::string& text) {
    auto list = core::key_list{0, 0};
    for (std::size_t i = 0; i < text.size(); ++i)
      list.append({text.data(), i + 1});
    return list.view();
  }

  static std::vector<chunk_key> keys(const std::string& text) {
    auto out = std::vector<chunk_key>{};
    const auto all = view(text);
    for (std::size_t i = 0; i < all.size(); ++i)
      out.push_back(all[i]);
    return out;
  }

  static core::store_offer offer(request_id id, const std::string& text) {
    auto out = core::store_offer{};
    out.request = id;
    out.keys = {view(text)};
    for (std::uint32_t i = 0; i < text.size(); ++i) {
      auto what = core::store_candidate{};
      what.key = out.keys[0][i];
      what.chunk = i;
      what.end_tokens = 4 * (i + 1);
      what.first_token = 4 * i;
      out.candidates.push_back(std::move(what));
    }
    return out;
  }

  static msg::complete_jobs done(job_kind kind, const std::string& text,
                                 bool ok = true) {
    auto rows = std::vector<job_row>{};
    for (const auto& key : keys(text))
      rows.push_back({key, 0, 0, {}});
    return {{{0, kind, std::move(rows), ok, false, {}}}};
  }

  static msg::search search(const std::string& text, token_count known,
                            promise_id promise = 0) {
    auto query = core::search_query{};
    query.keys = {view(text)};
    query.known = known;
    query.promise = promise;
    return {0, {query}};
  }

  std::optional<token_count> hit(const std::string& text) {
    tell(search(text, static_cast<token_count>(4 * text.size()) + 1));
    return log.searches.back().answers.at(0).tokens;
  }

  core::pool_state state() {
    tell(msg::get_pool_report{});
    return log.report.state;
  }

  void store(const std::string& text) {
    tell(msg::prepare_stores{1, {}, {offer(1, text)}});
    tell(done(job_kind::store, text));
  }

  heard log;
  scheduler_cache_port scheduler;
  cache_manager_actor uut;
};

TEST_F(CacheManager, HasNoRoomBeforeItsPoolIsOpen) {
  tell(msg::prepare_stores{1, {}, {offer(1, "a")}});
  EXPECT_TRUE(log.stores.at(0).grants.at(0).refused());
  tell(msg::open_pool{4});
  store("a");
  EXPECT_EQ(hit("a"), 4);
}

TEST_F(CacheManager, AnswersOneGrantPerOffer) {
  tell(msg::open_pool{3});
  tell(msg::prepare_stores{5, {}, {offer(1, "ab"), offer(2, "xy")}});
  ASSERT_EQ(log.stores.size(), 1u);
  EXPECT_EQ(log.stores[0].turn, 5u);
  ASSERT_EQ(log.stores[0].grants.size(), 2u);
  EXPECT_EQ(log.stores[0].grants[0].accepted.size(), 2u);
  EXPECT_EQ(log.stores[0].grants[1].accepted.size(), 1u);
  EXPECT_EQ(log.stores[0].grants[1].settled_tokens / 4, 1);
}

TEST_F(CacheManager, AnswersOneSearchPerQuery) {
  tell(msg::open_pool{4});
  store("ab");
  auto ask = search("abc", 13);
  ask.queries.push_back(search("x", 5).queries[0]);
  tell(ask);
  ASSERT_EQ(log.searches.size(), 1u);
  ASSERT_EQ(log.searches[0].answers.size(), 2u);
  EXPECT_EQ(log.searches[0].answers[0].tokens, 8);
  EXPECT_EQ(log.searches[0].answers[1].tokens, 0);
}

TEST_F(CacheManager, ExplainsWithoutAnyEffect) {
  tell(msg::open_pool{4});
  store("ab");
  const auto before = state();
  tell(msg::explain_keys{9, search("abc", 13, 7).queries[0]});
  ASSERT_EQ(log.explained.size(), 1u);
  EXPECT_EQ(log.explained[0].turn, 9u);
  EXPECT_EQ(log.explained[0].what.tokens, 8);
  EXPECT_EQ(log.explained[0].what.reason, miss_reason::absent);
  EXPECT_EQ(log.explained[0].what.chunk, 2u);
  EXPECT_EQ(state().held, 0u);
  EXPECT_EQ(state().lru, before.lru);
}

TEST_F(CacheManager, ShowsAChunkOnlyWhenItsStoreIsComplete) {
  tell(msg::open_pool{4});
  tell(msg::prepare_stores{1, {}, {offer(1, "a")}});
  EXPECT_EQ(hit("a"), std::nullopt);
  EXPECT_EQ(state().writing, 1u);
  tell(done(job_kind::store, "a"));
  EXPECT_EQ(hit("a"), 4);
  EXPECT_EQ(log.report.stored_chunks, 0u);
  (void)state();
  EXPECT_EQ(log.report.stored_chunks, 1u);
  EXPECT_THAT(log.rolled_back, IsEmpty());
}

TEST_F(CacheManager, SaysWhoSkippedAStoreThatFailed) {
  tell(msg::open_pool{4});
  tell(msg::prepare_stores{1, {}, {offer(1, "a"), offer(2, "a")}});
  tell(done(job_kind::store, "a", false));
  ASSERT_EQ(log.rolled_back.size(), 1u);
  EXPECT_THAT(log.rolled_back[0].skipped,
              ElementsAre(core::chunk_ref{2, 0, 0}));
  EXPECT_EQ(hit("a"), 0);
  EXPECT_EQ(state().free, 4u);
}

TEST_F(CacheManager, PinsWhatALoadReads) {
  tell(msg::open_pool{2});
  store("ab");
  tell(msg::prepare_load{0, keys("ab"), 0});
  EXPECT_TRUE(log.loads.at(0).grant.ok());
  EXPECT_EQ(log.loads[0].grant.slots.size(), 2u);
  EXPECT_EQ(state().evictable, 0u);
  tell(msg::prepare_stores{1, {}, {offer(2, "x")}});
  EXPECT_TRUE(log.stores.back().grants.at(0).refused());
  tell(done(job_kind::load, "ab"));
  EXPECT_EQ(state().evictable, 2u);
  EXPECT_EQ(log.report.loaded_chunks, 2u);
}

TEST_F(CacheManager, NamesTheFirstKeyThatIsAbsent) {
  tell(msg::open_pool{2});
  store("a");
  tell(msg::prepare_load{0, keys("ab"), 0});
  EXPECT_EQ(log.loads.at(0).grant.absent, 1u);
  EXPECT_EQ(state().evictable, 1u) << "nothing is pinned";
}

TEST_F(CacheManager, HoldsAPromiseUntilItEnds) {
  tell(msg::open_pool{2});
  store("ab");
  tell(search("ab", 9, 3));
  EXPECT_TRUE(log.searches.back().answers.at(0).held);
  EXPECT_EQ(state().held, 2u);
  tell(msg::release_promise{4});
  EXPECT_EQ(state().held, 2u);
  tell(msg::release_promise{3});
  EXPECT_EQ(state().held, 0u);
  tell(search("ab", 9, 5));
  tell(msg::prepare_load{0, keys("ab"), 5});
  EXPECT_EQ(state().held, 0u) << "the load took its place";
  EXPECT_EQ(log.report.state.busy, 2u);
}

TEST_F(CacheManager, KeepsRunningSlotsOutOfUseThroughAReset) {
  tell(msg::open_pool{2});
  tell(msg::prepare_stores{1, {}, {offer(1, "a")}});
  const auto slot = log.stores.at(0).grants.at(0).accepted.at(0).slot;
  tell(msg::reset_pool{{slot}, true, {}});
  EXPECT_EQ(state().free, 1u);
  EXPECT_EQ(state().quarantined, 1u);
  tell(msg::release_slots{{slot}});
  EXPECT_EQ(state().free, 2u);
  EXPECT_EQ(hit("a"), 0);
}

TEST_F(CacheManager, KeepsWhatARanksNextLifeHas) {
  tell(msg::open_pool{3});
  store("ab");
  tell(msg::prepare_stores{1, {}, {offer(1, "c")}});
  const auto slot = log.stores.back().grants.at(0).accepted.at(0).slot;
  const auto second = keys("ab").back();
  const auto digest = core::wide_digest_of(second);
  auto part = msg::reset_pool{{slot}, true, {}};
  part.kept = std::vector<core::kept_chunk>{{1, digest}, {0, digest}};
  tell(part);
  EXPECT_EQ(state().free, 1u);
  EXPECT_EQ(log.report.state.quarantined, 1u);
  EXPECT_EQ(log.report.state.evictable, 1u);
  tell(msg::prepare_load{0, {second}});
  EXPECT_TRUE(log.loads.back().grant.ok());
}

TEST_F(CacheManager, MovesKeysBeforeItLooksAtOffers) {
  tell(msg::open_pool{2});
  store("a");
  store("x");
  // "a" is older, but its request has just ended.
  tell(msg::prepare_stores{1, {{view("a")}}, {offer(2, "q")}});
  EXPECT_THAT(log.stores.back().grants.at(0).evicted,
              ElementsAreArray(keys("x")));
  (void)state();
  EXPECT_EQ(log.report.evicted_chunks, 1u);
}

TEST_F(CacheManager, DrainsItsEventsInOrder) {
  tell(msg::open_pool{1});
  store("a");
  store("x");
  tell(msg::drain_events{});
  ASSERT_EQ(log.events.size(), 1u);
  ASSERT_EQ(log.events[0].events.size(), 3u);
  EXPECT_EQ(log.events[0].events[0].kind, cache_event::kind_t::stored);
  EXPECT_EQ(log.events[0].events[1].kind, cache_event::kind_t::removed);
  EXPECT_EQ(log.events[0].events[1].removed, keys("a"));
  EXPECT_EQ(log.events[0].events[2].kind, cache_event::kind_t::stored);
  tell(msg::drain_events{});
  EXPECT_THAT(log.events[1].events, IsEmpty());
}

TEST_F(CacheManager, TellsTheStateOfSingleKeys) {
  using presence = core::host_pool::presence;
  tell(msg::open_pool{2});
  store("a");
  tell(msg::prepare_stores{1, {}, {offer(1, "x")}});
  tell(msg::lookup_keys{{keys("a")[0], keys("x")[0], keys("q")[0]}});
  EXPECT_THAT(log.keys.states,
              ElementsAre(presence::hit, presence::pending, presence::miss));
}

TEST_F(CacheManager, TouchesKeysFromTheLastToTheFirst) {
  tell(msg::open_pool{3});
  store("a");
  store("x");
  store("q");
  tell(msg::touch_keys{{keys("x")[0], keys("a")[0]}});
  EXPECT_THAT(state().lru.value(),
              ElementsAre(keys("q")[0], keys("a")[0], keys("x")[0]));
}

// Somebody who is gone gets no answer, and nothing else changes.
TEST_F(CacheManager, OutlivesWhoeverAsked) {
  tell(msg::open_pool{2});
  store("a");
  world.kill(scheduler);
  world.send(uut, msg::get_pool_report{});
  world.run();
  scheduler = world.spawn(fake_scheduler, &log);
  EXPECT_EQ(hit("a"), 4);
}

} // namespace
} // namespace kvtide
