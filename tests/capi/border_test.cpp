// SPDX-License-Identifier: Apache-2.0

/// @file
/// Wrong use of C gets a status and a sentence, never a crash.

#include "tests/capi/c_world.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <string>
#include <thread>

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace kvtide::test {
namespace {

/// Wrong use must name the argument and say what to do.
#define EXPECT_REFUSED(call, word)                                             \
  do {                                                                         \
    EXPECT_EQ((call), KVTIDE_INVALID_ARGUMENT) << #call;                       \
    EXPECT_THAT(kvtide_last_error(), HasSubstr(word)) << #call;                \
  } while (false)

class CBorder : public CWorld {
protected:
  CBorder() {
    opts.host_bytes = 0;
  }
};

TEST_F(CBorder, TakesNoNullHandle) {
  auto number = std::uint64_t{7};
  kvtide_batch* batch = nullptr;
  kvtide_rank* side = nullptr;
  const void* hashes = nullptr;
  auto count = std::size_t{0};
  const auto add = sized<kvtide_add_request>();
  const auto extend = sized<kvtide_extend_keys>();
  const auto given = sized<kvtide_allocated>();
  const auto finish = sized<kvtide_finish_call>();
  const auto step = sized<kvtide_step_call>();
  EXPECT_REFUSED(kvtide_add(nullptr, &add, &number), "runtime");
  EXPECT_REFUSED(kvtide_extend(nullptr, &extend, &number), "runtime");
  EXPECT_REFUSED(kvtide_lookup(nullptr, nullptr, 0, &number), "runtime");
  EXPECT_REFUSED(kvtide_decline(nullptr, 1, &number), "runtime");
  EXPECT_REFUSED(kvtide_allocate(nullptr, &given, &number), "runtime");
  EXPECT_REFUSED(kvtide_finish(nullptr, &finish, &number), "runtime");
  EXPECT_REFUSED(kvtide_truncate(nullptr, 1, 0, &number), "runtime");
  EXPECT_REFUSED(kvtide_step(nullptr, &step, &number), "runtime");
  EXPECT_REFUSED(kvtide_outputs(nullptr, 1, nullptr, 0, &number), "runtime");
  EXPECT_REFUSED(kvtide_reset(nullptr, &number), "runtime");
  EXPECT_REFUSED(kvtide_take_events(nullptr, &number), "runtime");
  EXPECT_REFUSED(kvtide_get_stats(nullptr, &number), "runtime");
  EXPECT_REFUSED(kvtide_explain(nullptr, 1, &number), "runtime");
  EXPECT_REFUSED(kvtide_sleep(nullptr, 1, &number), "runtime");
  EXPECT_REFUSED(kvtide_wake(nullptr, &number), "runtime");
  EXPECT_REFUSED(kvtide_shutdown(nullptr, 1, &number), "runtime");
  EXPECT_REFUSED(kvtide_advance(nullptr, 1, &number), "runtime");
  EXPECT_REFUSED(kvtide_poll(nullptr, &batch), "runtime");
  EXPECT_REFUSED(kvtide_await(nullptr, 1, 0, &batch), "runtime");
  EXPECT_REFUSED(kvtide_wait(nullptr, 0), "runtime");
  EXPECT_REFUSED(kvtide_restart_rank(nullptr, 0), "runtime");
  EXPECT_REFUSED(kvtide_local_rank(nullptr, 0, &side), "runtime");
  EXPECT_REFUSED(kvtide_rank_register_kv(nullptr, &memory), "rank");
  EXPECT_REFUSED(kvtide_rank_unregister_kv(nullptr), "rank");
  EXPECT_REFUSED(kvtide_rank_begin_step(nullptr, 1, nullptr, 0), "rank");
  EXPECT_REFUSED(kvtide_rank_end_step(nullptr, 1, nullptr, 0), "rank");
  EXPECT_REFUSED(kvtide_rank_get_stats(nullptr), "rank");
  EXPECT_REFUSED(kvtide_rank_make_event(nullptr, &number), "rank");
  EXPECT_REFUSED(kvtide_rank_complete_event(nullptr, 1), "rank");
  EXPECT_REFUSED(kvtide_rank_record_event(nullptr, 1, &number), "rank");
  EXPECT_REFUSED(kvtide_rank_poll(nullptr, &batch), "rank");
  EXPECT_REFUSED(kvtide_rank_await(nullptr, KVTIDE_EVENT_STEP_READY, 0, &batch),
                 "rank");
  EXPECT_REFUSED(kvtide_rank_wait(nullptr, 0), "rank");
  EXPECT_REFUSED(kvtide_hasher_append(nullptr, nullptr, 0, &hashes, &count),
                 "hasher");
  EXPECT_EQ(kvtide_event_fd(nullptr), -1);
  EXPECT_EQ(kvtide_rank_event_fd(nullptr), -1);
  EXPECT_EQ(kvtide_batch_size(nullptr), 0u);
  EXPECT_EQ(kvtide_batch_at(nullptr, 0), nullptr);
  EXPECT_EQ(kvtide_hasher_made(nullptr), 0u);
  kvtide_destroy(nullptr);
  kvtide_batch_free(nullptr);
  kvtide_hasher_destroy(nullptr);
  EXPECT_EQ(number, 7u) << "a call that fails writes nothing";
}

TEST_F(CBorder, TakesNoNullInPlaceOfAStructOrAResult) {
  ASSERT_NO_FATAL_FAILURE(start());
  auto* const runtime = rt.get();
  EXPECT_REFUSED(kvtide_start(nullptr, nullptr), "runtime");
  kvtide_runtime* made = nullptr;
  EXPECT_REFUSED(kvtide_start(nullptr, &made), "kvtide_options");
  EXPECT_REFUSED(kvtide_options_init(nullptr), "kvtide_options");
  EXPECT_REFUSED(kvtide_group_options_init(nullptr), "kvtide_group_options");
  EXPECT_REFUSED(kvtide_cuda_options_init(nullptr), "kvtide_cuda_options");
  EXPECT_REFUSED(kvtide_add_request_init(nullptr), "kvtide_add_request");
  EXPECT_REFUSED(kvtide_kv_memory_init(nullptr), "kvtide_kv_memory");
  EXPECT_REFUSED(kvtide_add(runtime, nullptr, nullptr), "kvtide_add_request");
  EXPECT_REFUSED(kvtide_extend(runtime, nullptr, nullptr),
                 "kvtide_extend_keys");
  EXPECT_REFUSED(kvtide_allocate(runtime, nullptr, nullptr),
                 "kvtide_allocated");
  EXPECT_REFUSED(kvtide_finish(runtime, nullptr, nullptr),
                 "kvtide_finish_call");
  EXPECT_REFUSED(kvtide_step(runtime, nullptr, nullptr), "kvtide_step_call");
  EXPECT_REFUSED(kvtide_rank_register_kv(rank, nullptr), "kvtide_kv_memory");
  EXPECT_REFUSED(kvtide_poll(runtime, nullptr), "batch");
  EXPECT_REFUSED(kvtide_rank_poll(rank, nullptr), "batch");
  EXPECT_REFUSED(kvtide_await(runtime, 1, 0, nullptr), "answer");
  EXPECT_REFUSED(kvtide_rank_await(rank, KVTIDE_EVENT_STEP_READY, 0, nullptr),
                 "event");
  EXPECT_REFUSED(kvtide_local_rank(runtime, 0, nullptr), "out");
  EXPECT_REFUSED(kvtide_rank_make_event(rank, nullptr), "event");
  EXPECT_REFUSED(kvtide_rank_record_event(rank, 1, nullptr), "event");
  EXPECT_REFUSED(kvtide_hasher_make(4, nullptr, 0, nullptr), "hasher");
}

TEST_F(CBorder, TakesNoNullListWithACount) {
  ASSERT_NO_FATAL_FAILURE(start());
  auto* const runtime = rt.get();
  EXPECT_REFUSED(kvtide_lookup(runtime, nullptr, 3, nullptr),
                 "kvtide_lookup_row");
  EXPECT_REFUSED(kvtide_outputs(runtime, 1, nullptr, 3, nullptr),
                 "kvtide_output_row");
  auto step = sized<kvtide_step_call>();
  step.row_count = 3;
  EXPECT_REFUSED(kvtide_step(runtime, &step, nullptr), "kvtide_step_row");
  step = sized<kvtide_step_call>();
  step.preempted_count = 3;
  EXPECT_REFUSED(kvtide_step(runtime, &step, nullptr), "preempted");
  step = sized<kvtide_step_call>();
  step.finished_count = 3;
  EXPECT_REFUSED(kvtide_step(runtime, &step, nullptr), "kvtide_finish_call");
  auto one = sized<kvtide_step_row>();
  one.new_block_list_count = 1;
  step = sized<kvtide_step_call>();
  step.rows = &one;
  step.row_count = 1;
  EXPECT_REFUSED(kvtide_step(runtime, &step, nullptr), "new_blocks");
  const auto list = kvtide_block_list{nullptr, 2};
  one.new_blocks = &list;
  EXPECT_REFUSED(kvtide_step(runtime, &step, nullptr), "ids");
  auto given = sized<kvtide_allocated>();
  given.block_list_count = 1;
  EXPECT_REFUSED(kvtide_allocate(runtime, &given, nullptr), "blocks");
  given = sized<kvtide_allocated>();
  given.hashed_list_count = 1;
  EXPECT_REFUSED(kvtide_allocate(runtime, &given, nullptr), "hashed");
  auto keys = sized<kvtide_extend_keys>();
  keys.hash_bytes = 16;
  keys.hash_count = 2;
  EXPECT_REFUSED(kvtide_extend(runtime, &keys, nullptr), "hashes");
  keys = sized<kvtide_extend_keys>();
  keys.token_id_count = 2;
  EXPECT_REFUSED(kvtide_extend(runtime, &keys, nullptr), "token_ids");
  keys = sized<kvtide_extend_keys>();
  keys.parent_bytes = 2;
  EXPECT_REFUSED(kvtide_extend(runtime, &keys, nullptr), "parent");
  EXPECT_REFUSED(kvtide_rank_begin_step(rank, 1, nullptr, 5), "plan");
  EXPECT_REFUSED(kvtide_rank_end_step(rank, 1, nullptr, 5), "events");
  auto kv = memory;
  kv.tensors = nullptr;
  EXPECT_REFUSED(kvtide_rank_register_kv(rank, &kv), "kvtide_kv_tensor");
  kv = memory;
  kv.references = nullptr;
  EXPECT_REFUSED(kvtide_rank_register_kv(rank, &kv), "kvtide_kv_reference");
  kv = memory;
  kv.stream_count = 1;
  EXPECT_REFUSED(kvtide_rank_register_kv(rank, &kv), "streams");
  opts.groups = nullptr;
  kvtide_runtime* made = nullptr;
  EXPECT_REFUSED(kvtide_start(&opts, &made), "kvtide_group_options");
}

TEST_F(CBorder, TakesNoListThatNoMemoryHolds) {
  ASSERT_NO_FATAL_FAILURE(start());
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  const auto one = sized<kvtide_lookup_row>();
  EXPECT_REFUSED(kvtide_lookup(rt.get(), &one, most, nullptr), "count");
  const auto list = kvtide_block_list{nullptr, 0};
  auto given = sized<kvtide_allocated>();
  given.blocks = &list;
  given.block_list_count = most / 2 / sizeof(list);
  EXPECT_EQ(kvtide_allocate(rt.get(), &given, nullptr), KVTIDE_OUT_OF_MEMORY);
  EXPECT_THAT(kvtide_last_error(), HasSubstr("memory"));
}

TEST_F(CBorder, TakesNoNumberOutOfAnEnumeration) {
  ASSERT_NO_FATAL_FAILURE(start());
  auto finish = sized<kvtide_finish_call>();
  finish.reason = KVTIDE_FINISH_IGNORED + 1;
  EXPECT_REFUSED(kvtide_finish(rt.get(), &finish, nullptr), "reason");
  finish.reason = -1;
  EXPECT_REFUSED(kvtide_finish(rt.get(), &finish, nullptr), "reason");
  auto one = sized<kvtide_step_row>();
  one.kind = KVTIDE_ROW_RESUMED + 1;
  auto step = sized<kvtide_step_call>();
  step.rows = &one;
  step.row_count = 1;
  EXPECT_REFUSED(kvtide_step(rt.get(), &step, nullptr), "kind");
  tensor.kind = 3;
  EXPECT_REFUSED(kvtide_rank_register_kv(rank, &memory), "kind");
  kvtide_batch* out = nullptr;
  EXPECT_REFUSED(kvtide_rank_await(rank, KVTIDE_EVENT_STATS, 0, &out), "kind");
  EXPECT_REFUSED(kvtide_await(rt.get(), 0, 0, &out), "ticket");
  auto add = sized<kvtide_add_request>();
  add.no_read = 2;
  EXPECT_REFUSED(kvtide_add(rt.get(), &add, nullptr), "no_read");
  const std::uint8_t flag = 2;
  const auto flags = kvtide_flag_list{&flag, 1};
  auto given = sized<kvtide_allocated>();
  given.hashed = &flags;
  given.hashed_list_count = 1;
  EXPECT_REFUSED(kvtide_allocate(rt.get(), &given, nullptr), "flag");
  kvtide_hasher* hasher = nullptr;
  EXPECT_REFUSED(kvtide_hasher_make(0, nullptr, 0, &hasher), "tokens_per_hash");
}

TEST_F(CBorder, TakesNoNumberOutOfAnEnumerationOfOptions) {
  const auto refuse = [this](std::int32_t kvtide_options::*member,
                             std::int32_t number, const char* name) {
    auto wrong = opts;
    wrong.*member = number;
    kvtide_runtime* made = nullptr;
    EXPECT_REFUSED(kvtide_start(&wrong, &made), name);
    EXPECT_EQ(made, nullptr);
  };
  refuse(&kvtide_options::policy, 2, "policy");
  refuse(&kvtide_options::rules, 3, "rules");
  refuse(&kvtide_options::delivery, 2, "delivery");
  refuse(&kvtide_options::device, 3, "device");
  refuse(&kvtide_options::order_checks, 3, "order_checks");
  refuse(&kvtide_options::device, -1, "device");
  auto cuda = sized<kvtide_cuda_options>();
  EXPECT_OK(kvtide_cuda_options_init(&cuda));
  opts.cuda = &cuda;
  EXPECT_NO_FATAL_FAILURE(start()) << "the defaults are fine";
  kvtide_runtime* made = nullptr;
  cuda.path = 4;
  EXPECT_REFUSED(kvtide_start(&opts, &made), "path");
  cuda.path = 0;
  cuda.fences = 2;
  EXPECT_REFUSED(kvtide_start(&opts, &made), "fences");
  cuda.fences = 0;
  cuda.huge_pages = 3;
  EXPECT_REFUSED(kvtide_start(&opts, &made), "huge_pages");
  cuda.huge_pages = 0;
  cuda.numa_binding = 2;
  EXPECT_REFUSED(kvtide_start(&opts, &made), "numa_binding");
}

TEST_F(CBorder, TakesNoHashThatIsTooLong) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto bytes = std::string(100, 'x');
  auto keys = sized<kvtide_extend_keys>();
  keys.hashes = bytes.data();
  keys.hash_bytes = 65;
  keys.hash_count = 1;
  EXPECT_REFUSED(kvtide_extend(rt.get(), &keys, nullptr), "hash_bytes");
  keys.hash_bytes = 0;
  EXPECT_REFUSED(kvtide_extend(rt.get(), &keys, nullptr), "hash_bytes");
  keys.hash_bytes = 64;
  keys.parent = bytes.data();
  keys.parent_bytes = 65;
  EXPECT_REFUSED(kvtide_extend(rt.get(), &keys, nullptr), "parent_bytes");
}

TEST_F(CBorder, SaysWhichOptionIsWrong) {
  opts.blocks_per_chunk = 0;
  kvtide_runtime* made = nullptr;
  EXPECT_EQ(kvtide_start(&opts, &made), KVTIDE_INVALID_OPTIONS);
  EXPECT_THAT(kvtide_last_error(), HasSubstr("blocks_per_chunk"));
  opts.blocks_per_chunk = 1;
  opts.reserved = 1;
  EXPECT_REFUSED(kvtide_start(&opts, &made), "reserved");
  opts.reserved = 0;
  opts.job_deadline_ms = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(kvtide_start(&opts, &made), KVTIDE_INVALID_OPTIONS);
  EXPECT_EQ(made, nullptr);
}

TEST_F(CBorder, HasOneGroupWithoutAnyList) {
  opts.groups = nullptr;
  opts.group_count = 0;
  EXPECT_NO_FATAL_FAILURE(start()); // 16 tokens, a multiple of 4.
}

// -- versions of structs ------------------------------------------------------

TEST_F(CBorder, TakesAStructOfAnEarlierVersion) {
  ASSERT_NO_FATAL_FAILURE(start());
  auto add = sized<kvtide_add_request>();
  add.request = 1;
  add.no_read = 99; // Lies behind the end.
  add.cap = -5;
  add.struct_size = offsetof(kvtide_add_request, cap);
  EXPECT_OK(kvtide_add(rt.get(), &add, nullptr));
  add.struct_size = sizeof(add);
  EXPECT_REFUSED(kvtide_add(rt.get(), &add, nullptr), "no_read");
}

TEST_F(CBorder, TakesALaterStructWhoseNewMembersSayNothing) {
  ASSERT_NO_FATAL_FAILURE(start());
  struct later {
    kvtide_add_request now;
    std::uint64_t more = 0;
  } add{sized<kvtide_add_request>()};
  add.now.struct_size = sizeof(add);
  EXPECT_OK(kvtide_add(rt.get(), &add.now, nullptr));
  add.more = 1;
  EXPECT_EQ(kvtide_add(rt.get(), &add.now, nullptr), KVTIDE_UNSUPPORTED);
  EXPECT_THAT(kvtide_last_error(),
              AllOf(HasSubstr("kvtide_add_request"), HasSubstr("0.1.0")));
}

TEST_F(CBorder, WalksThroughListsOfAnotherVersion) {
  ASSERT_NO_FATAL_FAILURE(start());
  struct later {
    kvtide_lookup_row now;
    std::uint64_t more = 0;
  };
  later rows[3] = {};
  for (auto& one : rows) {
    one.now.struct_size = sizeof(later);
    one.now.request = static_cast<std::uint64_t>(&one - rows) + 10;
  }
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_lookup(rt.get(), &rows[0].now, 3, &ticket));
  const auto answer = answer_to(ticket);
  ASSERT_EQ(only(answer).as.lookup.hit_count, 3u);
  for (std::uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(only(answer).as.lookup.hits[i].request, i + 10);
  rows[2].more = 1;
  EXPECT_EQ(kvtide_lookup(rt.get(), &rows[0].now, 3, &ticket),
            KVTIDE_UNSUPPORTED);
  rows[2].more = 0;
  rows[2].now.struct_size = sizeof(kvtide_lookup_row);
  EXPECT_REFUSED(kvtide_lookup(rt.get(), &rows[0].now, 3, &ticket), "differs");
}

TEST_F(CBorder, TakesNoSizeThatWasNeverSet) {
  ASSERT_NO_FATAL_FAILURE(start());
  auto add = kvtide_add_request{};
  for (const auto size :
       {std::size_t{0}, sizeof(std::size_t), sizeof(add) - 1,
        std::size_t{1} << 20, std::numeric_limits<std::size_t>::max()}) {
    add.struct_size = size;
    EXPECT_REFUSED(kvtide_add(rt.get(), &add, nullptr),
                   "sizeof(kvtide_add_request)");
    EXPECT_REFUSED(kvtide_add_request_init(&add), "struct_size");
    EXPECT_EQ(add.struct_size, size);
  }
}

TEST(CDefaults, FillAnEarlierStructUpToItsEnd) {
  auto add = sized<kvtide_add_request>();
  std::memset(&add, 0x55, sizeof(add));
  add.struct_size = offsetof(kvtide_add_request, no_read);
  EXPECT_OK(kvtide_add_request_init(&add));
  EXPECT_EQ(add.cap, KVTIDE_NO_CAP);
  EXPECT_EQ(add.request, 0u);
  EXPECT_EQ(add.no_read, 0x55555555u);
}

TEST(CDefaults, AreThoseOfTheDocumentation) {
  auto group = sized<kvtide_group_options>();
  EXPECT_OK(kvtide_group_options_init(&group));
  EXPECT_EQ(group.tokens_per_block, 16);
  auto opts = sized<kvtide_options>();
  EXPECT_OK(kvtide_options_init(&opts));
  EXPECT_EQ(opts.struct_size, sizeof(opts));
  EXPECT_EQ(opts.host_bytes, 0u);
  EXPECT_EQ(opts.rules, KVTIDE_RULES_SAFE);
  EXPECT_EQ(opts.job_deadline_ms, 10'000);
  EXPECT_EQ(opts.enable_prefix_caching, 1u);
  auto cuda = sized<kvtide_cuda_options>();
  EXPECT_OK(kvtide_cuda_options_init(&cuda));
  EXPECT_EQ(cuda.kernel_below, KVTIDE_AS_MEASURED);
  EXPECT_EQ(cuda.kernel_blocks, 12u);
  auto memory = sized<kvtide_kv_memory>();
  EXPECT_OK(kvtide_kv_memory_init(&memory));
  EXPECT_EQ(memory.writers, 1u);
}

// -- threads ------------------------------------------------------------------

TEST_F(CBorder, LetsOneThreadAtATimeTakeEvents) {
  ASSERT_NO_FATAL_FAILURE(start());
  kvtide_batch* answer = nullptr;
  auto status = kvtide_status{KVTIDE_INTERNAL};
  auto waiter = std::thread{[&] {
    do { // The other thread may be first.
      status = kvtide_await(rt.get(), 1, patience_ms, &answer);
    } while (status == KVTIDE_OUT_OF_ORDER);
  }};
  kvtide_batch* none = nullptr;
  while (kvtide_poll(rt.get(), &none) != KVTIDE_OUT_OF_ORDER)
    std::this_thread::yield();
  EXPECT_THAT(kvtide_last_error(), HasSubstr("thread"));
  EXPECT_EQ(none, nullptr);
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_get_stats(rt.get(), &ticket)) << "an await is no call";
  EXPECT_EQ(ticket, 1u);
  waiter.join();
  EXPECT_EQ(status, KVTIDE_OK);
  const auto taken = batch{answer};
  EXPECT_EQ(only(taken).ticket, 1u);
  EXPECT_EQ(only(taken).as.stats->order_errors, 0u);
  EXPECT_OK(kvtide_poll(rt.get(), &none));
  EXPECT_EQ(none, nullptr) << "of a poll that was refused its status says so";
}

// -- sentences ----------------------------------------------------------------

TEST_F(CBorder, KeepsASentenceForEachThread) {
  EXPECT_NE(kvtide_wait(nullptr, 0), KVTIDE_OK);
  const auto mine = std::string{kvtide_last_error()};
  EXPECT_NE(mine, "");
  std::thread{[] {
    EXPECT_STREQ(kvtide_last_error(), "");
    EXPECT_NE(kvtide_rank_wait(nullptr, 0), KVTIDE_OK);
    EXPECT_THAT(kvtide_last_error(), HasSubstr("rank"));
  }}.join();
  EXPECT_EQ(kvtide_last_error(), mine);
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_EQ(kvtide_last_error(), mine) << "a success leaves it";
}

} // namespace
} // namespace kvtide::test
