// SPDX-License-Identifier: Apache-2.0

/// @file
/// A runtime with `options::host_bytes` zero: each call is answered before it
/// returns, by no thread but the caller's. Nothing here waits.

#include "kvtide/runtime.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <poll.h>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

using namespace std::chrono_literals;

namespace kvtide::test {
namespace {

constexpr std::uint32_t blocks = 8;
constexpr std::uint64_t block_bytes = 64;

options no_room() {
  auto out = options{};
  out.groups.front().tokens_per_block = 4;
  out.blocks_per_chunk = 2;
  out.tokens_per_hash = 4;
  out.model_fingerprint = "m";
  out.ranks = 2;
  out.host_bytes = 0;
  return out;
}

bool readable(int fd) {
  auto what = pollfd{fd, POLLIN, 0};
  return ::poll(&what, 1, 0) == 1;
}

std::set<std::string> threads() {
  auto out = std::set<std::string>{};
  for (const auto& entry :
       std::filesystem::directory_iterator{"/proc/self/task"})
    out.insert(entry.path().filename());
  return out;
}

/// With both ways of delivery: plans say the same nothing in either.
class NoCache : public ::testing::TestWithParam<plan_delivery> {
protected:
  static options make_options() {
    auto out = no_room();
    out.delivery = GetParam();
    return out;
  }

  rank& side() {
    return uut.local_rank(1);
  }

  /// What is there now, if it is one event of that kind.
  template <class Event, class Side>
  static Event only(Side& from) {
    EXPECT_TRUE(readable(from.event_fd()));
    auto events = from.poll();
    EXPECT_FALSE(readable(from.event_fd()));
    if (events.size() == 1)
      if (auto* found = std::get_if<Event>(&events.front()))
        return std::move(*found);
    ADD_FAILURE() << "not the one event that was expected, but "
                  << events.size() << " events";
    return {};
  }

  void expect_failure(ticket_id ticket, request_id request, ec code) {
    const auto failed = only<call_failed>(uut);
    EXPECT_EQ(failed.ticket, ticket);
    EXPECT_EQ(failed.request, request);
    EXPECT_EQ(failed.reason.code, code);
    EXPECT_NE(failed.reason.text, "");
  }

  /// How a call was answered that is answered by `call_done`.
  ec ended_with(ticket_id ticket) {
    auto events = uut.poll();
    EXPECT_EQ(events.size(), 1u);
    if (const auto* failed = std::get_if<call_failed>(&events.at(0))) {
      EXPECT_EQ(failed->ticket, ticket);
      return failed->reason.code;
    }
    EXPECT_EQ(std::get<call_done>(events.at(0)).ticket, ticket);
    return ec::none;
  }

  void expect_silence() {
    EXPECT_FALSE(readable(uut.event_fd()));
    EXPECT_FALSE(uut.wait(0ms));
    EXPECT_TRUE(uut.poll().empty());
  }

  stats counted() {
    uut.get_stats();
    return only<stats_answer>(uut).values;
  }

  kv_memory memory() {
    auto out = kv_memory{};
    out.rank = 1;
    out.model_fingerprint = "m";
    out.tensors.push_back({gpu.data(), gpu.size(), memory_kind::host, blocks,
                           block_bytes, block_bytes});
    out.references.push_back({0, 0, 0, 0, block_bytes});
    return out;
  }

  static add_request add_of(request_id id, token_count tokens) {
    auto out = add_request{};
    out.request = id;
    out.prompt_tokens = out.known_tokens = tokens;
    return out;
  }

  std::vector<std::byte> gpu = std::vector<std::byte>(blocks * block_bytes);
  std::set<std::string> before = threads();
  runtime uut = runtime::start(make_options()).value();
};

INSTANTIATE_TEST_SUITE_P(Deliveries, NoCache,
                         ::testing::Values(plan_delivery::direct,
                                           plan_delivery::by_engine),
                         [](const auto& x) -> std::string {
                           return x.param == plan_delivery::direct
                                  ? "direct"
                                  : "by_engine";
                         });

TEST_P(NoCache, StartsNoThread) {
  uut.step({1, {}, {}, {}});
  side().begin_step(1);
  for (const auto& thread : threads())
    EXPECT_EQ(before.count(thread), 1u) << thread;
}

TEST_P(NoCache, ChecksItsOptions) {
  auto opts = make_options();
  opts.blocks_per_chunk = 0;
  EXPECT_EQ(runtime::start(opts).failure().code, ec::invalid_options);
}

TEST_P(NoCache, HasNothingToSayToMostCalls) {
  uut.add(add_of(7, 4));
  uut.extend({7, 0, {prefix_hash{"a", 1}}, {}, {}});
  uut.allocate({7, 0, {{1}}, {{0}}});
  uut.outputs({1, {{7, 5, 4}}});
  uut.truncate({7, 4});
  expect_silence();
  EXPECT_EQ(counted().order_errors, 0u);
}

TEST_P(NoCache, FindsNothing) {
  const auto ticket = uut.lookup({{7, 0, 8}, {9, 4, 4}});
  const auto answer = only<lookup_answer>(uut);
  EXPECT_EQ(answer.ticket, ticket);
  ASSERT_EQ(answer.hits.size(), 2u);
  EXPECT_EQ(answer.hits[0].request, 7u);
  EXPECT_EQ(answer.hits[1].request, 9u);
  for (const auto& hit : answer.hits) {
    EXPECT_FALSE(hit.ask_again);
    EXPECT_EQ(hit.tokens, 0);
    EXPECT_EQ(hit.promise, 0u);
  }
  EXPECT_EQ(counted().lookups, 2u);
}

TEST_P(NoCache, RefusesWhatCannotBe) {
  expect_failure(uut.add(add_of(7, -1)), 7, ec::invalid_argument);
  expect_failure(uut.lookup({{7, 0, 4}, {9, 5, 4}}), 9, ec::invalid_argument);
  expect_failure(uut.decline(1), 0, ec::unknown_promise);
  expect_failure(uut.allocate({7, 4, {{1}}, {{0}}}), 7, ec::invalid_argument);
  expect_failure(uut.finish({7, finish_reason::stop, -1, 0}), 7,
                 ec::invalid_argument);
  const auto values = counted();
  EXPECT_EQ(values.lookups, 0u);
  EXPECT_EQ(values.order_errors, 5u);
  EXPECT_EQ(values.order_errors_by_rule[0], 5u);
}

TEST_P(NoCache, PlansNothing) {
  for (step_id step : {5u, 6u}) {
    const auto ticket
      = uut.step({step, {{7, row_kind::fresh, {{1}}, 0, 4, 4}}, {8}, {}});
    const auto plan = only<step_plan>(uut);
    EXPECT_EQ(plan.ticket, ticket);
    EXPECT_EQ(plan.step, step);
    EXPECT_TRUE(plan.loads.empty());
    EXPECT_TRUE(plan.stores.empty());
    EXPECT_TRUE(plan.flush.empty());
    EXPECT_FALSE(plan.pending_work);
    side().begin_step(step, plan.bytes);
    const auto ready = only<step_ready>(side());
    EXPECT_EQ(ready.rank, 1u);
    EXPECT_EQ(ready.step, step);
    EXPECT_EQ(ready.wait_for.kind, fence::kind_t::none);
    side().end_step(step, {});
    EXPECT_TRUE(side().poll().empty());
  }
  EXPECT_EQ(counted().steps, 2u);
}

TEST_P(NoCache, CountsStepsUpByOne) {
  uut.step({5, {}, {}, {}});
  (void)only<step_plan>(uut);
  expect_failure(uut.step({5, {}, {}, {}}), 0, ec::out_of_order);
  expect_failure(uut.step({7, {}, {}, {}}), 0, ec::out_of_order);
  uut.step({6, {}, {}, {}});
  EXPECT_EQ(only<step_plan>(uut).step, 6u);
  EXPECT_EQ(counted().steps, 2u);
}

TEST_P(NoCache, HoldsNoBlockOfWhatEnds) {
  const auto ticket = uut.finish({7, finish_reason::stop, 4, 4});
  const auto answer = only<finish_answer>(uut);
  EXPECT_EQ(answer.ticket, ticket);
  EXPECT_EQ(answer.request, 7u);
  EXPECT_TRUE(answer.held.empty());
}

TEST_P(NoCache, ForgetsNothing) {
  const auto ticket = uut.reset();
  const auto done = only<call_done>(uut);
  EXPECT_EQ(done.ticket, ticket);
  EXPECT_TRUE(done.in_flight.empty());
  EXPECT_EQ(counted().resets, 1u);
}

TEST_P(NoCache, HasNoEvents) {
  const auto ticket = uut.take_events();
  const auto answer = only<events_answer>(uut);
  EXPECT_EQ(answer.ticket, ticket);
  EXPECT_TRUE(answer.events.empty());
}

TEST_P(NoCache, StopsOnce) {
  const auto ticket = uut.shutdown(1h);
  const auto done = only<call_done>(uut);
  EXPECT_EQ(done.ticket, ticket);
  EXPECT_TRUE(done.in_flight.empty());
  expect_failure(uut.add(add_of(7, 4)), 7, ec::shutting_down);
  expect_failure(uut.shutdown(1h), 0, ec::shutting_down);
  uut.step({1, {}, {}, {}}); // Requests may go on.
  EXPECT_EQ(only<step_plan>(uut).step, 1u);
}

TEST_P(NoCache, MovesSimulatedTimeForward) {
  expect_failure(uut.advance(5), 0, ec::unsupported);
  auto opts = make_options();
  opts.device = device_kind::host_virtual;
  uut = runtime::start(opts).value();
  for (nanoseconds_t now : {5, 5, 6}) {
    const auto ticket = uut.advance(now);
    EXPECT_EQ(only<call_done>(uut).ticket, ticket);
  }
  expect_failure(uut.advance(5), 0, ec::invalid_argument);
}

TEST_P(NoCache, AnswersInTheOrderOfTheCalls) {
  auto tickets = std::vector<ticket_id>{};
  tickets.push_back(uut.decline(1));
  uut.add(add_of(7, 4));
  tickets.push_back(uut.lookup({{7, 0, 4}}));
  tickets.push_back(uut.step({1, {}, {}, {}}));
  tickets.push_back(uut.finish({7, finish_reason::stop, 4, 4}));
  tickets.push_back(uut.get_stats());
  EXPECT_TRUE(uut.wait(0ms));
  auto answered = std::vector<ticket_id>{};
  for (const auto& event : uut.poll())
    std::visit(
      [&](const auto& x) {
        if constexpr (requires { x.ticket; })
          answered.push_back(x.ticket);
      },
      event);
  EXPECT_EQ(answered, tickets);
}

TEST_P(NoCache, RegistersMemoryWithoutSlots) {
  auto kv = memory();
  kv.tensors.front().kind = memory_kind::device; // Nothing touches it.
  side().register_kv(kv);
  const auto answer = only<kv_registered>(side());
  EXPECT_EQ(answer.reason.code, ec::none) << answer.reason.text;
  EXPECT_EQ(answer.rank, 1u);
  EXPECT_EQ(answer.slots, 0u);
  EXPECT_EQ(answer.slot_bytes, 2 * block_bytes);
  side().unregister_kv();
  EXPECT_EQ(only<kv_unregistered>(side()).rank, 1u);
}

TEST_P(NoCache, ChecksMemoryAsAlways) {
  auto wrong = std::vector<kv_memory>(4, memory());
  wrong[0].rank = 0;
  wrong[1].model_fingerprint = "n";
  wrong[2].writers = 0;
  wrong[3].references.front().group = 1;
  for (const auto& kv : wrong) {
    side().register_kv(kv);
    const auto answer = only<kv_registered>(side());
    EXPECT_EQ(answer.rank, 1u);
    EXPECT_EQ(answer.reason.code, ec::invalid_argument);
    EXPECT_NE(answer.reason.text, "");
  }
}

TEST_P(NoCache, CountsNothingOnARank) {
  side().get_stats();
  const auto answer = only<rank_stats>(side());
  EXPECT_EQ(answer.rank, 1u);
  EXPECT_EQ(answer.order_errors, 0u);
  EXPECT_EQ(answer.late_jobs, 0u);
  EXPECT_EQ(answer.failed_jobs, 0u);
}

TEST_P(NoCache, HasRanksThatAlwaysLive) {
  EXPECT_EQ(uut.restart_rank(1).code, ec::out_of_order);
  EXPECT_EQ(uut.restart_rank(2).code, ec::invalid_argument);
}

TEST_P(NoCache, LetsAnEventBeCompleted) {
  const auto event = side().make_event();
  ASSERT_TRUE(event);
  side().begin_step(1);
  side().end_step(1, {event.value()});
  side().complete_event(event.value());
  EXPECT_EQ(only<step_ready>(side()).step, 1u);
}

// Each rank has a thread of its own beside the engine's.
TEST_P(NoCache, ServesARankOnAnotherThread) {
  constexpr step_id steps = 1'000;
  auto begun = step_id{0};
  auto compute = std::thread{[this, &begun] {
    for (step_id step = 1; step <= steps; ++step) {
      side().begin_step(step);
      for (const auto& event : side().poll())
        begun += std::get<step_ready>(event).step == step;
      side().end_step(step, {});
    }
  }};
  auto planned = step_id{0};
  for (step_id step = 1; step <= steps; ++step) {
    uut.step({step, {}, {}, {}});
    for (const auto& event : uut.poll())
      planned += std::get<step_plan>(event).step == step;
  }
  compute.join();
  EXPECT_EQ(begun, steps);
  EXPECT_EQ(planned, steps);
}

TEST_P(NoCache, SleepsAndWakesWithoutAnybodysMemory) {
  EXPECT_EQ(ended_with(uut.sleep(1ms)), ec::none);
  EXPECT_EQ(ended_with(uut.sleep(1ms)), ec::out_of_order);
  expect_failure(uut.step({1, {}, {}, {}}), 0, ec::out_of_order);
  expect_failure(uut.allocate({7, 4, {}, {}}), 7, ec::out_of_order);
  uut.lookup({{7, 0, 4}});
  EXPECT_EQ(only<lookup_answer>(uut).hits.at(0).tokens, 0);
  EXPECT_EQ(ended_with(uut.wake()), ec::none);
  EXPECT_EQ(ended_with(uut.wake()), ec::out_of_order);
  uut.step({1, {}, {}, {}});
  EXPECT_EQ(only<step_plan>(uut).step, 1u) << "no step was lost";
}

TEST_P(NoCache, SaysThatOffloadingIsOff) {
  const auto ticket = uut.explain(7);
  const auto why = only<explain_answer>(uut);
  EXPECT_EQ(why.ticket, ticket);
  EXPECT_EQ(why.request, 7u);
  EXPECT_EQ(why.reason, miss_reason::offloading_off);
  EXPECT_EQ(why.tokens, 0);
  EXPECT_FALSE(why.ask_again);
  EXPECT_NE(why.text, "");
}

} // namespace
} // namespace kvtide::test
