// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the calls of C do, and what comes back.

#include "tests/capi/c_world.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <poll.h>
#include <string>
#include <thread>

using ::testing::HasSubstr;

namespace kvtide::test {
namespace {

class CCalls : public CWorld {
protected:
  /// Stores three chunks of request 1, whose blocks are 1 to 3.
  void store() {
    add(1, 13, 3);
    const std::uint32_t ids[] = {1, 2, 3, 4};
    const auto table = kvtide_block_list{ids, 4};
    run_step({row(1, 0, 13, table)},
             [this] { std::iota(gpu.begin(), gpu.end(), 1); });
    auto call = sized<kvtide_finish_call>();
    call.request = 1;
    call.reason = KVTIDE_FINISH_LENGTH;
    call.known = call.computed = 13;
    auto ticket = std::uint64_t{0};
    EXPECT_OK(kvtide_finish(rt.get(), &call, &ticket));
    const auto answer = answer_to(ticket);
    EXPECT_EQ(only(answer).kind, KVTIDE_EVENT_FINISH);
    EXPECT_EQ(only(answer).as.finish.request, 1u);
    EXPECT_EQ(only(answer).as.finish.held.count, 0u);
    while (only(run_step({})).as.step_plan.pending_work != 0) {}
    EXPECT_EQ(stats().stored_chunks, 3u);
  }

  kvtide_lookup_hit look_up(std::uint64_t request) {
    auto row = sized<kvtide_lookup_row>();
    row.request = request;
    row.known_tokens = 13;
    auto ticket = std::uint64_t{0};
    EXPECT_OK(kvtide_lookup(rt.get(), &row, 1, &ticket));
    const auto answer = answer_to(ticket);
    EXPECT_EQ(only(answer).kind, KVTIDE_EVENT_LOOKUP);
    EXPECT_EQ(only(answer).ticket, ticket);
    EXPECT_EQ(only(answer).as.lookup.hit_count, 1u);
    return only(answer).as.lookup.hits[0];
  }

  kvtide_status outcome_of(std::uint64_t ticket) {
    kvtide_batch* out = nullptr;
    const auto status = kvtide_await(rt.get(), ticket, patience_ms, &out);
    kvtide_batch_free(out);
    return status;
  }
};

TEST_F(CCalls, BringBackEveryByte) {
  ASSERT_NO_FATAL_FAILURE(serve());
  store();
  const auto computed = gpu;
  std::fill(gpu.begin(), gpu.end(), 0xaa);
  add(2, 13, 3);
  const auto hit = look_up(2);
  EXPECT_EQ(hit.request, 2u);
  ASSERT_EQ(hit.tokens, 12);
  EXPECT_EQ(hit.ask_again, 0u);
  EXPECT_NE(hit.promise, 0u);
  const std::uint32_t ids[] = {7, 8, 9};
  const std::uint8_t none[] = {0, 0, 0};
  const auto table = kvtide_block_list{ids, 3};
  const auto flags = kvtide_flag_list{none, 3};
  auto call = sized<kvtide_allocated>();
  call.request = 2;
  call.external = 12;
  call.blocks = &table;
  call.block_list_count = 1;
  call.hashed = &flags;
  call.hashed_list_count = 1;
  EXPECT_OK(kvtide_allocate(rt.get(), &call, nullptr));
  const auto answer = run_step({});
  const auto& plan = only(answer).as.step_plan;
  EXPECT_EQ(plan.pending_work, 1u);
  ASSERT_EQ(plan.load_count, 1u);
  EXPECT_EQ(plan.loads[0].kind, KVTIDE_JOB_LOAD);
  EXPECT_EQ(plan.loads[0].request, 2u);
  ASSERT_EQ(plan.loads[0].row_count, 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto& one = plan.loads[0].rows[i];
    EXPECT_EQ(one.chunk, i);
    ASSERT_EQ(one.blocks.count, 1u);
    EXPECT_EQ(one.blocks.ids[0], 7 + i);
    ASSERT_EQ(one.key.hash_bytes, 2u);
    EXPECT_EQ(one.key.hash[0], 'a' + 2 * static_cast<int>(i));
  }
  const auto loaded = on_engine(KVTIDE_EVENT_LOAD_DONE);
  EXPECT_EQ(only(loaded).as.load.request, 2u);
  EXPECT_EQ(only(loaded).as.load.job, plan.loads[0].id);
  EXPECT_EQ(std::memcmp(&gpu[7 * block_bytes], &computed[1 * block_bytes],
                        3 * block_bytes),
            0);
  EXPECT_EQ(stats().loaded_chunks, 3u);
  EXPECT_EQ(stats().order_errors, 0u);
}

TEST_F(CCalls, SayWhatTheCacheKeeps) {
  opts.cache_events = 1;
  ASSERT_NO_FATAL_FAILURE(serve());
  store();
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_take_events(rt.get(), &ticket));
  const auto answer = answer_to(ticket);
  const auto& events = only(answer).as.cache_events;
  auto stored = std::size_t{0};
  for (std::size_t i = 0; i < events.count; ++i) {
    const auto& event = events.events[i];
    EXPECT_EQ(event.kind, KVTIDE_CACHE_STORED);
    EXPECT_EQ(event.removed_count, 0u);
    for (std::size_t j = 0; j < event.stored_count; ++j, ++stored) {
      const auto& chunk = event.stored[j];
      EXPECT_EQ(chunk.tokens, block_tokens);
      EXPECT_EQ(chunk.key.hash[0], 'a' + 2 * static_cast<int>(stored));
      if (stored == 0)
        EXPECT_EQ(chunk.parent, nullptr);
      else
        EXPECT_EQ(chunk.parent->hash[0], chunk.key.hash[0] - 2);
    }
  }
  EXPECT_EQ(stored, 3u);
}

TEST_F(CCalls, ForgetOnReset) {
  ASSERT_NO_FATAL_FAILURE(serve());
  store();
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_reset(rt.get(), &ticket));
  EXPECT_EQ(only(answer_to(ticket)).kind, KVTIDE_EVENT_CALL_DONE);
  add(2, 13, 3);
  EXPECT_EQ(look_up(2).tokens, 0);
}

TEST_F(CCalls, EndAPromiseOnce) {
  ASSERT_NO_FATAL_FAILURE(serve());
  store();
  add(2, 13, 3);
  const auto hit = look_up(2);
  EXPECT_OK(kvtide_decline(rt.get(), hit.promise, nullptr));
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_decline(rt.get(), hit.promise, &ticket));
  EXPECT_EQ(outcome_of(ticket), KVTIDE_UNKNOWN_PROMISE);
  EXPECT_STRNE(kvtide_last_error(), "");
}

TEST_F(CCalls, TakeProgressAndRollItBack) {
  ASSERT_NO_FATAL_FAILURE(serve());
  add(1, 13, 3);
  const std::uint32_t ids[] = {1, 2, 3, 4};
  const auto table = kvtide_block_list{ids, 4};
  run_step({row(1, 0, 13, table)});
  auto progress = sized<kvtide_output_row>();
  progress.request = 1;
  progress.known = 14;
  progress.computed = 13;
  EXPECT_OK(kvtide_outputs(rt.get(), last_step, &progress, 1, nullptr));
  EXPECT_OK(kvtide_truncate(rt.get(), 1, 8, nullptr));
  EXPECT_EQ(stats().order_errors, 0u);
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_truncate(rt.get(), 77, 8, &ticket));
  EXPECT_EQ(outcome_of(ticket), KVTIDE_UNKNOWN_REQUEST);
}

TEST_F(CCalls, RefuseToAddTwice) {
  ASSERT_NO_FATAL_FAILURE(serve());
  add(1, 13, 3);
  auto call = sized<kvtide_add_request>();
  call.request = 1;
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_add(rt.get(), &call, &ticket));
  EXPECT_EQ(outcome_of(ticket), KVTIDE_DUPLICATE_REQUEST);
}

TEST_F(CCalls, AddNobodyAfterShutdown) {
  ASSERT_NO_FATAL_FAILURE(serve());
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_shutdown(rt.get(), patience_ms, &ticket));
  const auto done = answer_to(ticket);
  EXPECT_EQ(only(done).as.done.in_flight.count, 0u);
  auto call = sized<kvtide_add_request>();
  call.request = 1;
  EXPECT_OK(kvtide_add(rt.get(), &call, &ticket));
  EXPECT_EQ(outcome_of(ticket), KVTIDE_SHUTTING_DOWN);
}

TEST_F(CCalls, MoveSimulatedTimeOnlyOnItsDevice) {
  ASSERT_NO_FATAL_FAILURE(serve());
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_advance(rt.get(), 5, &ticket));
  EXPECT_NE(outcome_of(ticket), KVTIDE_OK);
  opts.device = KVTIDE_DEVICE_HOST_VIRTUAL;
  ASSERT_NO_FATAL_FAILURE(serve());
  EXPECT_OK(kvtide_advance(rt.get(), 5, &ticket));
  EXPECT_EQ(outcome_of(ticket), KVTIDE_OK);
}

TEST_F(CCalls, ExplainWhatALookupFinds) {
  ASSERT_NO_FATAL_FAILURE(serve());
  store();
  add(2, 17, 4); // Its last whole chunk was never stored.
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_explain(rt.get(), 2, &ticket));
  const auto answer = answer_to(ticket);
  ASSERT_EQ(only(answer).kind, KVTIDE_EVENT_EXPLAIN);
  const auto& why_not = *only(answer).as.explain;
  EXPECT_EQ(why_not.struct_size, sizeof(kvtide_explain_answer));
  EXPECT_EQ(why_not.request, 2u);
  EXPECT_EQ(why_not.prompt_tokens, 17);
  EXPECT_EQ(why_not.hashed_tokens, 16);
  EXPECT_EQ(why_not.tokens, 12);
  EXPECT_EQ(why_not.ask_again, 0u);
  EXPECT_EQ(why_not.reason, KVTIDE_MISS_ABSENT);
  EXPECT_EQ(why_not.group, 0u);
  EXPECT_EQ(why_not.chunk, 3u);
  EXPECT_STRNE(why_not.text, "");
  ASSERT_EQ(why_not.chunk_list_count, 1u);
  ASSERT_EQ(why_not.chunks[0].count, 4u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(why_not.chunks[0].states[i], KVTIDE_CHUNK_READY) << i;
  EXPECT_EQ(why_not.chunks[0].states[3], KVTIDE_CHUNK_ABSENT);
  EXPECT_OK(kvtide_explain(rt.get(), 77, &ticket));
  EXPECT_EQ(outcome_of(ticket), KVTIDE_UNKNOWN_REQUEST);
}

TEST_F(CCalls, SleepAndWake) {
  ASSERT_NO_FATAL_FAILURE(serve());
  store();
  add(2, 13, 3);
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_sleep(rt.get(), patience_ms, &ticket));
  EXPECT_EQ(only(answer_to(ticket)).as.done.in_flight.count, 0u);
  EXPECT_EQ(look_up(2).tokens, 0);
  EXPECT_OK(kvtide_sleep(rt.get(), patience_ms, &ticket));
  EXPECT_EQ(outcome_of(ticket), KVTIDE_OUT_OF_ORDER);
  EXPECT_OK(kvtide_rank_unregister_kv(rank));
  on_rank(KVTIDE_EVENT_KV_UNREGISTERED);
  EXPECT_OK(kvtide_wake(rt.get(), &ticket));
  EXPECT_EQ(outcome_of(ticket), KVTIDE_RANK_UNAVAILABLE);
  auto elsewhere = std::vector<unsigned char>(gpu.size());
  tensor.base = elsewhere.data();
  EXPECT_OK(kvtide_rank_register_kv(rank, &memory));
  on_rank(KVTIDE_EVENT_KV_REGISTERED);
  EXPECT_OK(kvtide_wake(rt.get(), &ticket));
  EXPECT_EQ(only(answer_to(ticket)).kind, KVTIDE_EVENT_CALL_DONE);
  EXPECT_EQ(look_up(2).tokens, 12) << "the host pool was kept";
  rt.reset(); // Before the memory goes.
}

TEST_F(CCalls, GiveRanksAndTheirCounters) {
  ASSERT_NO_FATAL_FAILURE(serve());
  store();
  EXPECT_OK(kvtide_rank_get_stats(rank));
  const auto answer = on_rank(KVTIDE_EVENT_RANK_STATS);
  EXPECT_EQ(only(answer).as.rank_stats->copied_bytes, 3 * block_bytes);
  EXPECT_EQ(kvtide_restart_rank(rt.get(), 0), KVTIDE_OUT_OF_ORDER);
  EXPECT_THAT(kvtide_last_error(), HasSubstr("lives"));
  EXPECT_EQ(kvtide_restart_rank(rt.get(), 1), KVTIDE_INVALID_ARGUMENT);
  kvtide_rank* other = nullptr;
  EXPECT_EQ(kvtide_local_rank(rt.get(), 1, &other), KVTIDE_INVALID_ARGUMENT);
  EXPECT_EQ(other, nullptr);
  EXPECT_OK(kvtide_rank_unregister_kv(rank));
  EXPECT_EQ(only(on_rank(KVTIDE_EVENT_KV_UNREGISTERED)).rank, 0u);
}

TEST_F(CCalls, EndStepsBehindEvents) {
  ASSERT_NO_FATAL_FAILURE(serve());
  add(1, 4, 1);
  auto event = std::uint64_t{0};
  EXPECT_OK(kvtide_rank_make_event(rank, &event));
  EXPECT_NE(event, 0u);
  const std::uint32_t id = 1;
  const auto table = kvtide_block_list{&id, 1};
  const auto rows = row(1, 0, 4, table);
  auto call = sized<kvtide_step_call>();
  call.step = ++last_step;
  call.rows = &rows;
  call.row_count = 1;
  EXPECT_OK(kvtide_step(rt.get(), &call, nullptr));
  EXPECT_OK(kvtide_rank_begin_step(rank, last_step, nullptr, 0));
  on_rank(KVTIDE_EVENT_STEP_READY);
  EXPECT_OK(kvtide_rank_end_step(rank, last_step, &event, 1));
  std::thread{[&] {
    EXPECT_OK(kvtide_rank_complete_event(rank, event));
  }}.join();
  while (only(run_step({})).as.step_plan.pending_work != 0) {}
  EXPECT_EQ(kvtide_rank_record_event(rank, 0, &event), KVTIDE_UNSUPPORTED);
}

TEST_F(CCalls, NameTheJobsThatAreStillInFlight) {
  ASSERT_NO_FATAL_FAILURE(serve());
  add(1, 13, 3);
  auto event = std::uint64_t{0};
  EXPECT_OK(kvtide_rank_make_event(rank, &event));
  const std::uint32_t ids[] = {1, 2, 3, 4};
  const auto table = kvtide_block_list{ids, 4};
  const auto rows = row(1, 0, 13, table);
  auto call = sized<kvtide_step_call>();
  call.step = ++last_step;
  call.rows = &rows;
  call.row_count = 1;
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_step(rt.get(), &call, &ticket));
  const auto plan = answer_to(ticket);
  ASSERT_EQ(only(plan).as.step_plan.store_count, 1u);
  const auto job = only(plan).as.step_plan.stores[0].id;
  EXPECT_OK(kvtide_rank_begin_step(rank, last_step, nullptr, 0));
  on_rank(KVTIDE_EVENT_STEP_READY);
  EXPECT_OK(kvtide_rank_end_step(rank, last_step, &event, 1));
  run_step({}); // The copy waits for compute, which ends below.
  const auto expect_job = [&](const char* what) {
    const auto answer = answer_to(ticket);
    const auto& in_flight = only(answer).as.done.in_flight;
    ASSERT_EQ(in_flight.count, 1u) << what;
    EXPECT_EQ(in_flight.ids[0], job) << what;
  };
  EXPECT_OK(kvtide_reset(rt.get(), &ticket));
  expect_job("reset");
  EXPECT_OK(kvtide_sleep(rt.get(), 0, &ticket));
  expect_job("sleep");
  EXPECT_OK(kvtide_shutdown(rt.get(), 0, &ticket));
  expect_job("shutdown");
  EXPECT_OK(kvtide_rank_complete_event(rank, event));
}

TEST_F(CCalls, HandPlansOn) {
  opts.delivery = KVTIDE_DELIVERY_BY_ENGINE;
  ASSERT_NO_FATAL_FAILURE(serve());
  auto call = sized<kvtide_step_call>();
  call.step = 1;
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_step(rt.get(), &call, &ticket));
  const auto answer = answer_to(ticket);
  const auto& plan = only(answer).as.step_plan;
  ASSERT_GT(plan.byte_count, 0u);
  EXPECT_OK(kvtide_rank_begin_step(rank, 1, plan.bytes, plan.byte_count));
  const auto ready = on_rank(KVTIDE_EVENT_STEP_READY);
  EXPECT_EQ(only(ready).as.ready.fence_kind, KVTIDE_FENCE_NONE);
}

TEST_F(CCalls, SayWhyARegistrationIsRefused) {
  ASSERT_NO_FATAL_FAILURE(start());
  memory.model_fingerprint = "another";
  EXPECT_OK(kvtide_rank_register_kv(rank, &memory));
  kvtide_batch* out = nullptr;
  EXPECT_NE(
    kvtide_rank_await(rank, KVTIDE_EVENT_KV_REGISTERED, patience_ms, &out),
    KVTIDE_OK);
  EXPECT_EQ(out, nullptr);
  EXPECT_STRNE(kvtide_last_error(), "");
}

TEST_F(CCalls, AnswerAtOnceWithoutACache) {
  opts.host_bytes = 0;
  ASSERT_NO_FATAL_FAILURE(start());
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_get_stats(rt.get(), &ticket));
  auto what = pollfd{kvtide_event_fd(rt.get()), POLLIN, 0};
  EXPECT_EQ(::poll(&what, 1, 0), 1);
  kvtide_batch* out = nullptr;
  EXPECT_OK(kvtide_poll(rt.get(), &out));
  const auto made = batch{out};
  EXPECT_EQ(only(made).ticket, ticket);
  EXPECT_EQ(::poll(&what, 1, 0), 0);
  EXPECT_OK(kvtide_poll(rt.get(), &out));
  EXPECT_EQ(out, nullptr) << "nothing has arrived";
  EXPECT_EQ(kvtide_wait(rt.get(), 0), KVTIDE_TIMEOUT);
}

TEST_F(CCalls, KeepForPollWhatWasNotAwaited) {
  opts.host_bytes = 0;
  ASSERT_NO_FATAL_FAILURE(start());
  std::uint64_t tickets[3] = {};
  for (auto& ticket : tickets)
    EXPECT_OK(kvtide_get_stats(rt.get(), &ticket));
  EXPECT_EQ(only(answer_to(tickets[1])).ticket, tickets[1]);
  EXPECT_OK(kvtide_wait(rt.get(), 0)) << "two are set aside";
  kvtide_batch* out = nullptr;
  EXPECT_EQ(kvtide_await(rt.get(), tickets[1], 0, &out), KVTIDE_TIMEOUT);
  EXPECT_OK(kvtide_poll(rt.get(), &out));
  const auto made = batch{out};
  ASSERT_EQ(kvtide_batch_size(out), 2u);
  EXPECT_EQ(kvtide_batch_at(out, 0)->ticket, tickets[0]);
  EXPECT_EQ(kvtide_batch_at(out, 1)->ticket, tickets[2]);
  EXPECT_EQ(kvtide_batch_at(out, 2), nullptr);
  EXPECT_EQ(kvtide_wait(rt.get(), 0), KVTIDE_TIMEOUT);
}

TEST_F(CCalls, KeepABatchBeyondItsRuntime) {
  opts.host_bytes = 0;
  ASSERT_NO_FATAL_FAILURE(start());
  auto call = sized<kvtide_add_request>();
  call.request = 5;
  call.prompt_tokens = -1;
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_add(rt.get(), &call, &ticket));
  EXPECT_OK(kvtide_get_stats(rt.get(), &ticket));
  kvtide_batch* out = nullptr;
  EXPECT_OK(kvtide_poll(rt.get(), &out));
  const auto made = batch{out};
  rt.reset();
  ASSERT_GT(kvtide_batch_size(out), 0u);
  const auto* last = kvtide_batch_at(out, kvtide_batch_size(out) - 1);
  EXPECT_EQ(last->as.stats->struct_size, sizeof(kvtide_stats));
}

TEST(CHasher, MakesEqualHashesOfEqualTokens) {
  const std::int32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto run = [&](const std::string& salt, std::size_t first) {
    kvtide_hasher* hasher = nullptr;
    EXPECT_OK(kvtide_hasher_make(4, salt.data(), salt.size(), &hasher));
    const void* hashes = nullptr;
    auto count = std::size_t{0};
    auto out = std::string{};
    EXPECT_OK(kvtide_hasher_append(hasher, tokens, first, &hashes, &count));
    out.append(static_cast<const char*>(hashes), count * KVTIDE_HASH_BYTES);
    EXPECT_OK(
      kvtide_hasher_append(hasher, tokens + first, 9 - first, &hashes, &count));
    out.append(static_cast<const char*>(hashes), count * KVTIDE_HASH_BYTES);
    EXPECT_EQ(kvtide_hasher_made(hasher), 2u);
    kvtide_hasher_destroy(hasher);
    return out;
  };
  const auto one = run("", 8);
  EXPECT_EQ(one.size(), 2u * KVTIDE_HASH_BYTES);
  EXPECT_EQ(run("", 3), one);
  EXPECT_NE(run("tenant", 3), one);
  const auto with_zero = std::string{"a\0b", 3};
  EXPECT_NE(run(with_zero, 3), run("a", 3)) << "a salt may contain zeros";
}

TEST(CVersion, IsThatOfTheHeader) {
  EXPECT_EQ(kvtide_version(), std::uint32_t{KVTIDE_VERSION});
  EXPECT_STREQ(kvtide_version_string(), "0.1.0");
}

TEST(CNames, AreThereForEveryNumber) {
  EXPECT_STREQ(kvtide_status_name(KVTIDE_OK), "ok");
  EXPECT_STREQ(kvtide_status_name(KVTIDE_UNKNOWN_REQUEST), "unknown_request");
  EXPECT_STREQ(kvtide_status_name(KVTIDE_INTERNAL), "internal");
  EXPECT_STREQ(kvtide_status_name(-1), "unknown status");
  EXPECT_STREQ(kvtide_status_name(KVTIDE_SCHEDULER_UNREACHABLE),
               "scheduler_unreachable");
  EXPECT_STREQ(kvtide_status_name(KVTIDE_SCHEDULER_UNREACHABLE + 1),
               "unknown status");
  EXPECT_STREQ(kvtide_chunk_state_name(KVTIDE_CHUNK_READY), "ready");
  EXPECT_STREQ(kvtide_chunk_state_name(6), "unknown state");
  EXPECT_STREQ(kvtide_miss_reason_name(KVTIDE_MISS_DRAFT), "draft");
  EXPECT_STREQ(kvtide_miss_reason_name(17), "unknown reason");
}

} // namespace
} // namespace kvtide::test
