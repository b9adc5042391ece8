// SPDX-License-Identifier: Apache-2.0

/// @file
/// Replicas, a directory and a router, one message at a time, on lines that
/// lose, repeat and swap what they carry.

#include "actors/cache_manager.hpp"
#include "actors/directory_desk.hpp"
#include "actors/publisher.hpp"
#include "actors/publisher_desk.hpp"
#include "actors/router_desk.hpp"
#include "messages/digest_bytes.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/listen.hpp"

#include <caf/binary_serializer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace kvtide {
namespace {

struct no_state {
  static inline const char* name = "test";
};

using pool_actor = caf::typed_actor<caf::reacts_to<msg::get_pool_part>>;

/// A pool that a test fills.
struct played_pool {
  std::vector<std::uint64_t> slots = std::vector<std::uint64_t>(3'000);
  caf::actor_addr publisher;
};

pool_actor::behavior_type pool_of(pool_actor::stateful_pointer<no_state> self,
                                  played_pool* pool) {
  return {[self, pool](const msg::get_pool_part& x) {
    auto out = msg::pool_part{self->address(),
                              x.first,
                              x.first + x.count,
                              {},
                              x.first + x.count >= pool->slots.size()};
    for (auto at = std::size_t{x.first};
         at < std::min<std::size_t>(out.next, pool->slots.size()); ++at)
      if (pool->slots[at] != 0)
        out.digests.push_back(pool->slots[at]);
    caf::anon_send(caf::actor_cast<pool_watcher_port>(pool->publisher),
                   std::move(out));
  }};
}

/// The line from a publisher to the directory: carries everything, or keeps
/// publications until the test says what becomes of them.
struct played_line {
  bool keeps = false;
  std::deque<msg::publish> kept;
  std::vector<std::size_t> bytes;
  caf::actor_system* system = nullptr;
};

std::size_t wire_bytes(caf::actor_system& system, msg::publish x) {
  auto out = std::vector<char>{};
  auto sink = caf::binary_serializer{system, out};
  EXPECT_FALSE(sink(x));
  return out.size();
}

directory_actor::behavior_type
line_to(directory_actor::stateful_pointer<no_state> self,
        directory_actor directory, played_line* line) {
  const auto pass = [self, directory](auto x) {
    caf::send_as(caf::actor_cast<caf::actor>(self->current_sender()), directory,
                 std::move(x));
  };
  return {
    [=](const msg::enroll& x) { pass(x); },
    [=](const msg::withdraw& x) { pass(x); },
    [=](const msg::publish& x) {
      line->bytes.push_back(wire_bytes(*line->system, x));
      if (line->keeps)
        line->kept.push_back(x);
      else
        pass(x);
    },
    [=](const msg::ask_replicas& x) { pass(x); },
  };
}

class DirectoryDesk : public test::actor_fixture {
protected:
  /// A replica whose pool a test fills.
  struct replica {
    played_pool pool;
    played_line line;
    pool_actor pool_handle;
    publisher_actor publisher;
    directory_actor way;

    void changes(test::actor_world& world, std::uint64_t digest, bool stored) {
      world.send(publisher,
                 msg::pool_changed{pool_handle.address(), {{digest, stored}}});
    }
  };

  DirectoryDesk() {
    desk = world.spawn(directory_desk, core::replica_directory::config{});
  }

  std::unique_ptr<replica> start(const std::string& name,
                                 std::uint64_t incarnation = 1) {
    auto out = std::make_unique<replica>();
    auto config = publisher_desk_config{};
    config.replica = name;
    config.incarnation = incarnation;
    out->publisher = world.spawn(publisher_desk, config);
    out->pool.publisher = out->publisher.address();
    out->pool_handle = world.spawn(pool_of, &out->pool);
    out->line.system = &world.system();
    out->way = world.spawn(line_to, desk, &out->line);
    return out;
  }

  void meet(replica& x) {
    world.send(x.publisher, msg::watch_pool{x.pool_handle.address()});
    world.send(x.publisher,
               msg::knock{msg::protocol_version,
                          caf::actor_cast<caf::strong_actor_ptr>(x.way)});
    world.run();
  }

  core::replica_directory& known() {
    return test::state_of<directory_desk_state>(desk).replicas;
  }

  /// What the directory says that a replica has.
  token_count tokens(const std::string& name,
                     const std::vector<std::uint64_t>& digests) {
    const auto run = core::chunk_run{1, digests};
    for (const auto& one : known().holdings({&run, 1}))
      if (known().name_of(one.seat) == name)
        return one.tokens;
    return -1;
  }

  void deliver(replica& x, std::size_t at) {
    const auto one = x.line.kept[at];
    x.line.kept.erase(x.line.kept.begin() + static_cast<std::ptrdiff_t>(at));
    world.send_as(caf::actor_cast<caf::actor>(x.publisher), desk, one);
    world.run();
  }

  directory_actor desk;
};

// -- publications -------------------------------------------------------------

TEST_F(DirectoryDesk, LearnsWhatAPoolHasAndWhatChanges) {
  const auto a = start("a");
  a->pool.slots[0] = 7;
  a->pool.slots[2'999] = 8;
  meet(*a);
  EXPECT_EQ(tokens("a", {7, 8}), 2);
  EXPECT_TRUE(known().is_whole(0));
  a->changes(world, 9, true);
  a->changes(world, 8, false);
  world.run();
  EXPECT_EQ(tokens("a", {7, 9}), 2);
  EXPECT_EQ(tokens("a", {8}), 0);
}

TEST_F(DirectoryDesk, ALargePoolComesInMessagesOfBoundedSize) {
  const auto a = start("a");
  a->pool.slots.assign(100'000, 0);
  for (std::uint64_t i = 0; i < a->pool.slots.size(); ++i)
    a->pool.slots[i] = i + 1;
  meet(*a);
  EXPECT_EQ(known().keys(), 100'000u);
  EXPECT_TRUE(known().is_whole(0));
  EXPECT_GE(a->line.bytes.size(), 40u);
  EXPECT_LE(*std::max_element(a->line.bytes.begin(), a->line.bytes.end()),
            std::size_t{20} << 10);
}

TEST_F(DirectoryDesk, ALostPublicationIsNoticedAndMended) {
  const auto a = start("a");
  meet(*a);
  a->line.keeps = true;
  a->pool.slots[0] = 7;
  a->changes(world, 7, true);
  world.run();
  ASSERT_EQ(a->line.kept.size(), 1u);
  a->line.kept.clear(); // Lost.
  a->line.keeps = false;
  // Fewer than a batch wait for the answer that does not come: patience ends.
  a->changes(world, 8, true);
  a->pool.slots[1] = 8;
  world.run();
  EXPECT_EQ(tokens("a", {7}), 0);
  for (auto i = 0; i < 25; ++i)
    world.advance(100ms);
  EXPECT_EQ(tokens("a", {7, 8}), 2);
  EXPECT_TRUE(known().is_whole(0));
}

TEST_F(DirectoryDesk, ARemovalThatIsLostIsNotBelievedForEver) {
  const auto a = start("a");
  a->pool.slots[0] = 7;
  meet(*a);
  a->line.keeps = true;
  a->pool.slots[0] = 0;
  a->changes(world, 7, false);
  for (std::uint64_t i = 0; i < 4'000; ++i)
    a->changes(world, 100 + i, true);
  world.run();
  ASSERT_GE(a->line.kept.size(), 2u);
  a->line.kept.pop_front(); // The removal.
  a->line.keeps = false;
  deliver(*a, 0); // A gap: it starts over.
  EXPECT_EQ(tokens("a", {7}), 0);
  EXPECT_TRUE(known().is_whole(0));
}

TEST_F(DirectoryDesk, RepeatedAndSwappedPublicationsDoNoHarm) {
  const auto a = start("a");
  meet(*a);
  a->line.keeps = true;
  for (std::uint64_t i = 1; i <= 6'000; ++i) {
    a->pool.slots[i % 3'000] = i; // The second half replaces the first.
    if (i > 3'000)
      a->changes(world, i - 3'000, false);
    a->changes(world, i, true);
  }
  world.run();
  ASSERT_GE(a->line.kept.size(), 2u);
  a->line.kept.push_back(a->line.kept.front());
  deliver(*a, 1);
  a->line.keeps = false;
  while (!a->line.kept.empty())
    deliver(*a, a->line.kept.size() - 1);
  for (auto i = 0; i < 25; ++i)
    world.advance(100ms);
  EXPECT_EQ(known().keys(), 3'000u);
  EXPECT_EQ(tokens("a", {3'001, 6'000}), 2);
  EXPECT_EQ(tokens("a", {1}), 0);
  EXPECT_TRUE(known().is_whole(0));
}

TEST_F(DirectoryDesk, ADirectoryThatDoesNotReadMakesNoQueueGrow) {
  const auto a = start("a");
  meet(*a);
  a->line.keeps = true;
  auto all = msg::pool_changed{a->pool_handle.address(), {}};
  for (std::uint64_t i = 1; i <= 200'000; ++i)
    all.changes.push_back({i, true});
  world.send(a->publisher, std::move(all));
  world.run();
  EXPECT_LE(a->line.kept.size(), 4u);
  EXPECT_GE(test::state_of<publisher_desk_state>(a->publisher).said.overflows(),
            1u);
}

TEST_F(DirectoryDesk, APoolThatWasResetIsReadAgain) {
  const auto a = start("a");
  a->pool.slots[0] = 7;
  meet(*a);
  a->pool.slots[0] = 9;
  world.send(a->publisher, msg::watch_pool{a->pool_handle.address()});
  world.run();
  EXPECT_EQ(tokens("a", {7}), 0);
  EXPECT_EQ(tokens("a", {9}), 1);
}

TEST_F(DirectoryDesk, APoolThatIsGoneHasNothing) {
  const auto a = start("a");
  a->pool.slots[0] = 7;
  meet(*a);
  world.send(a->publisher, msg::pool_gone{a->pool_handle.address()});
  world.run();
  EXPECT_EQ(known().replicas(), 0u);
  meet(*a);
  EXPECT_EQ(tokens("a", {7}), 1);
}

// -- lives --------------------------------------------------------------------

TEST_F(DirectoryDesk, AReplicaThatIsGoneIsForgotten) {
  const auto a = start("a");
  a->pool.slots[0] = 7;
  meet(*a);
  world.kill(a->publisher);
  EXPECT_EQ(known().replicas(), 0u);
  EXPECT_EQ(known().keys(), 0u);
}

TEST_F(DirectoryDesk, ALaterLifeTakesTheNameAndTheEarlierOneIsRefused) {
  const auto old = start("a", 1);
  old->pool.slots[0] = 7;
  meet(*old);
  const auto next = start("a", 2);
  next->pool.slots[0] = 8;
  meet(*next);
  EXPECT_EQ(tokens("a", {8}), 1);
  old->changes(world, 9, true); // It has not heard yet.
  world.run();
  EXPECT_EQ(known().replicas(), 1u);
  EXPECT_EQ(tokens("a", {7}), 0);
  EXPECT_EQ(tokens("a", {9}), 0);
  EXPECT_THAT(test::state_of<publisher_desk_state>(old->publisher).refused,
              ::testing::HasSubstr("a later life of \"a\""));
  world.kill(old->publisher); // Its end is not that of the later life.
  EXPECT_EQ(tokens("a", {8}), 1);
}

TEST_F(DirectoryDesk, ADirectoryThatIsRestartedHearsEverythingAgain) {
  const auto a = start("a");
  a->pool.slots[0] = 7;
  meet(*a);
  world.kill(a->way); // The connection.
  world.kill(desk);
  a->changes(world, 9, true);
  a->pool.slots[1] = 9;
  desk = world.spawn(directory_desk, core::replica_directory::config{});
  a->way = world.spawn(line_to, desk, &a->line);
  meet(*a);
  EXPECT_EQ(tokens("a", {7, 9}), 2);
}

TEST_F(DirectoryDesk, AnotherVersionIsRefusedWithASentence) {
  auto heard = std::string{};
  const auto peer
    = world.spawn([&heard](directory_user_port::stateful_pointer<no_state>) {
        return test::listen<directory_user_port>(
          [&heard](const msg::enrolled& x) { heard = x.refused; },
          [&heard](const msg::replicas_found& x) { heard = x.refused; });
      });
  world.send_as(caf::actor_cast<caf::actor>(peer), desk,
                msg::enroll{msg::protocol_version + 1, "a", 1});
  world.run();
  EXPECT_THAT(heard, ::testing::HasSubstr("install the same version"));
  heard.clear();
  world.send_as(caf::actor_cast<caf::actor>(peer), desk,
                msg::ask_replicas{msg::protocol_version + 1, 1, {}});
  world.run();
  EXPECT_THAT(heard, ::testing::HasSubstr("install the same version"));
  EXPECT_EQ(known().replicas(), 0u);
}

TEST_F(DirectoryDesk, NobodyHasNoEffect) {
  world.send(desk, msg::enroll{msg::protocol_version, "a", 1});
  world.send(desk, msg::publish{1, 1, true, false, {}, {}});
  world.send(desk, msg::withdraw{1});
  world.send(desk, msg::ask_replicas{});
  world.run();
  EXPECT_EQ(known().replicas(), 0u);
}

TEST_F(DirectoryDesk, WhatCannotBeReadHasNoEffect) {
  const auto a = start("a");
  a->line.keeps = true;
  meet(*a);
  ASSERT_FALSE(a->line.kept.empty());
  auto& first = a->line.kept.front();
  first.stored = "seven b";
  deliver(*a, 0);
  EXPECT_FALSE(known().is_whole(0));
  a->line.keeps = false;
  for (auto i = 0; i < 25; ++i)
    world.advance(100ms);
  EXPECT_TRUE(known().is_whole(0));
}

// -- routers ------------------------------------------------------------------

class Router : public DirectoryDesk {
protected:
  Router() {
    desk_of_router = world.spawn(router_desk, router_desk_config{50ms, 0.5});
  }

  void ask(ticket_id ticket, const std::vector<std::uint64_t>& digests) {
    world.send(desk_of_router,
               msg::route{ticket,
                          static_cast<token_count>(10 * digests.size()),
                          {{10, bytes_of(digests)}},
                          [this](replica_choice x) { heard.push_back(x); }});
    world.run();
  }

  void introduce(const directory_actor& to) {
    world.send(desk_of_router,
               msg::knock{msg::protocol_version,
                          caf::actor_cast<caf::strong_actor_ptr>(to)});
    world.run();
  }

  router_actor desk_of_router;
  std::vector<replica_choice> heard;
};

TEST_F(Router, HearsWhoHasMost) {
  const auto a = start("a");
  a->pool.slots = {1, 2};
  meet(*a);
  const auto b = start("b");
  b->pool.slots = {1, 2, 3};
  meet(*b);
  introduce(desk);
  ask(5, {1, 2, 3, 4});
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].ticket, 5u);
  EXPECT_EQ(heard[0].reason.code, ec::none);
  EXPECT_EQ(heard[0].replica, "b");
  EXPECT_EQ(heard[0].tokens, 30);
  EXPECT_EQ(heard[0].chunks, 3u);
  ASSERT_EQ(heard[0].all.size(), 2u);
  EXPECT_EQ(heard[0].all[0].tokens, 20);
  EXPECT_TRUE(heard[0].all[0].whole);
}

TEST_F(Router, DoesNotFollowASmallPartOfAPrompt) {
  const auto a = start("a");
  a->pool.slots = {1};
  meet(*a);
  const auto b = start("b");
  meet(*b);
  introduce(desk);
  for (const ticket_id ticket : {1, 2, 3})
    ask(ticket, {1, 2, 3, 4});
  ask(4, {1, 2});
  ASSERT_EQ(heard.size(), 4u);
  EXPECT_EQ(heard[0].replica, "a");
  EXPECT_EQ(heard[0].tokens, 10);
  EXPECT_EQ(heard[1].replica, "b");
  EXPECT_EQ(heard[1].tokens, 0);
  EXPECT_EQ(heard[2].replica, "a");
  EXPECT_EQ(heard[3].replica, "a") << "half of it is worth going there";
}

TEST_F(Router, WithoutADirectoryTheAnswerComesAtOnce) {
  ask(1, {1});
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].reason.code, ec::timeout);
}

TEST_F(Router, ASilentDirectoryIsNotAwaitedForLong) {
  const auto deaf
    = world.spawn([](directory_actor::stateful_pointer<no_state>) {
        return test::mute<directory_actor>();
      });
  introduce(deaf);
  ask(1, {1});
  world.advance(20ms);
  ask(2, {1});
  EXPECT_THAT(heard, IsEmpty());
  world.advance(30ms);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].ticket, 1u);
  world.advance(20ms);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[1].reason.code, ec::timeout);
}

TEST_F(Router, ADirectoryThatIsGoneAnswersNoMore) {
  const auto deaf
    = world.spawn([](directory_actor::stateful_pointer<no_state>) {
        return test::mute<directory_actor>();
      });
  introduce(deaf);
  ask(1, {1});
  world.kill(deaf);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].reason.code, ec::timeout);
  introduce(desk);
  ask(2, {1});
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[1].reason.code, ec::none);
  EXPECT_EQ(heard[1].replica, "");
}

// -- the cache manager's side -------------------------------------------------

class fixed_publisher : public publisher {
public:
  explicit fixed_publisher(publisher_actor handle)
    : handle_(std::move(handle)) {
    // nop
  }

  [[nodiscard]] caf::actor_addr address() const override {
    return handle_.address();
  }

private:
  publisher_actor handle_;
};

class Publishing : public DirectoryDesk {
protected:
  Publishing() {
    opts.groups.front().tokens_per_block = 4;
    opts.blocks_per_chunk = 1;
    opts.tokens_per_hash = 4;
    shape
      = std::make_shared<const core::layout>(core::make_layout(opts).value());
    one = start("a");
    opts.publisher = std::make_shared<fixed_publisher>(one->publisher);
    world.send(one->publisher,
               msg::knock{msg::protocol_version,
                          caf::actor_cast<caf::strong_actor_ptr>(desk)});
    mute_scheduler
      = world.spawn([](scheduler_cache_port::stateful_pointer<no_state>) {
          return test::mute<scheduler_cache_port>();
        });
    uut = world.spawn(cache_manager, cache_manager_config{shape, opts});
    tell(msg::open_pool{2});
  }

  template <class Message>
  void tell(Message message) {
    world.send_as(mute_scheduler, uut, std::move(message));
    world.run();
  }

  static core::key_view view(const std::string& text) {
    auto list = core::key_list{0, 0};
    for (std::size_t i = 0; i < text.size(); ++i)
      list.append({text.data(), i + 1});
    return list.view();
  }

  static std::vector<std::uint64_t> digests(const std::string& text) {
    auto out = std::vector<std::uint64_t>{};
    const auto keys = view(text);
    for (std::size_t i = 0; i < keys.size(); ++i)
      out.push_back(keys.ref(i).digest);
    return out;
  }

  void store(const std::string& text, bool ok = true) {
    auto offer = core::store_offer{};
    offer.request = 1;
    offer.keys = {view(text)};
    auto done = msg::complete_job{};
    done.ok = ok;
    auto rows = std::vector<job_row>{};
    for (std::uint32_t i = 0; i < text.size(); ++i) {
      auto what = core::store_candidate{};
      what.key = offer.keys.front()[i];
      what.chunk = i;
      what.end_tokens = 4 * (i + 1);
      offer.candidates.push_back(what);
      rows.emplace_back().key = what.key;
    }
    done.rows = std::move(rows);
    tell(msg::prepare_stores{0, {}, {offer}});
    tell(msg::complete_jobs{{done}});
  }

  options opts;
  std::shared_ptr<const core::layout> shape;
  std::unique_ptr<replica> one;
  scheduler_cache_port mute_scheduler;
  cache_manager_actor uut;
};

TEST_F(Publishing, AChunkIsKnownOnceEveryRankHasIt) {
  store("ab", false);
  EXPECT_EQ(tokens("a", digests("ab")), 0);
  store("ab");
  EXPECT_EQ(tokens("a", digests("ab")), 2);
}

TEST_F(Publishing, AnEvictedChunkIsForgotten) {
  store("ab");
  store("xy");
  EXPECT_EQ(tokens("a", digests("xy")), 2);
  EXPECT_EQ(tokens("a", digests("ab")), 0);
  EXPECT_EQ(known().keys(), 2u);
}

TEST_F(Publishing, AResetForgetsEverything) {
  store("ab");
  tell(msg::reset_pool{});
  EXPECT_EQ(known().keys(), 0u);
  EXPECT_EQ(known().replicas(), 1u);
  store("a");
  EXPECT_EQ(tokens("a", digests("ab")), 1);
}

TEST_F(Publishing, EventsAreStillThereForTheEngine) {
  opts.cache_events = true;
  uut = world.spawn(cache_manager, cache_manager_config{shape, opts});
  tell(msg::open_pool{2});
  store("ab");
  auto& cache = *test::state_of<cache_manager_state>(uut).cache;
  EXPECT_EQ(cache.take_events().size(), 1u);
  EXPECT_EQ(tokens("a", digests("ab")), 2);
}

TEST_F(Publishing, ACacheManagerThatDiesTakesItsChunksAlong) {
  store("ab");
  world.kill(uut);
  EXPECT_EQ(known().replicas(), 0u);
  uut = world.spawn(cache_manager, cache_manager_config{shape, opts});
  EXPECT_EQ(known().replicas(), 1u);
  EXPECT_EQ(tokens("a", digests("ab")), 0);
}

} // namespace
} // namespace kvtide
