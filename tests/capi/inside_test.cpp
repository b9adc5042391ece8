// SPDX-License-Identifier: Apache-2.0

/// @file
/// What C hears when actors die, and when two threads meet. No caller of
/// kvtide.h can bring that about, so these tests reach behind it, and link the
/// static library.

#include "capi/handles.hpp"
#include "tests/capi/c_world.hpp"
#include "tests/support/runtime_access.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <gmock/gmock.h>

#include <cstdint>
#include <string>

using ::testing::HasSubstr;

namespace kvtide::test {
namespace {

class CInside : public CWorld {
protected:
  using access = runtime_access;

  /// A thread that is in a call until this is destroyed.
  auto enter_runtime() {
    return access::parts(rt->side).caller->enter();
  }

  auto enter_rank() {
    return access::parts(rank->side).caller->enter();
  }

  batch poll() {
    kvtide_batch* out = nullptr;
    EXPECT_OK(kvtide_poll(rt.get(), &out));
    return batch{out};
  }

  batch poll_rank() {
    kvtide_batch* out = nullptr;
    EXPECT_OK(kvtide_rank_poll(rank, &out));
    return batch{out};
  }
};

// -- a lost runtime -----------------------------------------------------------

TEST_F(CInside, AwaitsNothingOnceTheLossWasPolled) {
  ASSERT_NO_FATAL_FAILURE(serve());
  auto call = sized<kvtide_add_request>();
  EXPECT_OK(kvtide_add_request_init(&call));
  call.request = 1;
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_add(rt.get(), &call, &ticket)); // No answer ever comes.
  kvtide_batch* none = nullptr;
  EXPECT_EQ(kvtide_await(rt.get(), ticket, 0, &none), KVTIDE_TIMEOUT);
  caf::anon_send_exit(access::parts(rt->side).scheduler,
                      caf::exit_reason::kill);
  const auto lost = on_engine(KVTIDE_EVENT_RUNTIME_LOST);
  ASSERT_NE(lost, nullptr);
  for (auto i = 0; i < 2; ++i) {
    EXPECT_EQ(kvtide_await(rt.get(), ticket, 0, &none), KVTIDE_SHUTTING_DOWN);
    EXPECT_STRNE(kvtide_last_error(), "");
    EXPECT_EQ(none, nullptr);
  }
}

TEST_F(CInside, AwaitsNothingWhileTheLossWasNotPolled) {
  ASSERT_NO_FATAL_FAILURE(serve());
  caf::anon_send_exit(access::parts(rt->side).scheduler,
                      caf::exit_reason::kill);
  kvtide_batch* none = nullptr;
  EXPECT_EQ(kvtide_await(rt.get(), 77, patience_ms, &none),
            KVTIDE_SHUTTING_DOWN);
  EXPECT_NE(on_engine(KVTIDE_EVENT_RUNTIME_LOST), nullptr) << "it is kept";
  EXPECT_EQ(kvtide_await(rt.get(), 77, patience_ms, &none),
            KVTIDE_SHUTTING_DOWN);
}

TEST_F(CInside, AnswersCallsThatComeAfterTheLoss) {
  ASSERT_NO_FATAL_FAILURE(serve());
  caf::anon_send_exit(access::parts(rt->side).scheduler,
                      caf::exit_reason::kill);
  ASSERT_NE(on_engine(KVTIDE_EVENT_RUNTIME_LOST), nullptr);
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_get_stats(rt.get(), &ticket));
  const auto heard = on_engine(KVTIDE_EVENT_CALL_FAILED);
  const auto* last
    = kvtide_batch_at(heard.get(), kvtide_batch_size(heard.get()) - 1);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->ticket, ticket);
  EXPECT_EQ(last->as.failed.code, KVTIDE_SHUTTING_DOWN);
}

// -- one thread at a time -----------------------------------------------------

TEST_F(CInside, TurnsAwayASecondThreadInACall) {
  ASSERT_NO_FATAL_FAILURE(serve());
  auto ticket = std::uint64_t{77};
  {
    const auto inside = enter_runtime();
    EXPECT_EQ(kvtide_reset(rt.get(), &ticket), KVTIDE_OUT_OF_ORDER);
    EXPECT_THAT(kvtide_last_error(), HasSubstr("thread"));
    EXPECT_EQ(kvtide_restart_rank(rt.get(), 0), KVTIDE_OUT_OF_ORDER);
    EXPECT_EQ(poll(), nullptr);
    EXPECT_OK(kvtide_wait(rt.get(), 0)) << "anybody may wait";
  }
  EXPECT_EQ(ticket, 77u);
  const auto events = poll();
  ASSERT_EQ(kvtide_batch_size(events.get()), 2u) << "of the reset and the poll";
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& event = *kvtide_batch_at(events.get(), i);
    EXPECT_EQ(event.kind, KVTIDE_EVENT_CALL_FAILED);
    EXPECT_EQ(event.ticket, 0u);
    EXPECT_EQ(event.as.failed.code, KVTIDE_OUT_OF_ORDER);
  }
  EXPECT_EQ(stats().resets, 0u);
}

TEST_F(CInside, AwaitsBesideAThreadInACall) {
  ASSERT_NO_FATAL_FAILURE(serve());
  auto ticket = std::uint64_t{0};
  EXPECT_OK(kvtide_get_stats(rt.get(), &ticket));
  {
    const auto inside = enter_runtime();
    EXPECT_EQ(only(answer_to(ticket)).kind, KVTIDE_EVENT_STATS);
    kvtide_batch* none = nullptr;
    EXPECT_EQ(kvtide_reset(rt.get(), nullptr), KVTIDE_OUT_OF_ORDER);
    EXPECT_EQ(kvtide_await(rt.get(), 77, 20, &none), KVTIDE_TIMEOUT);
  }
  const auto events = poll();
  EXPECT_EQ(only(events).kind, KVTIDE_EVENT_CALL_FAILED) << "of the reset";
  EXPECT_EQ(stats().order_errors, 1u) << "no look of an await counts";
}

TEST_F(CInside, AwaitsBesideAThreadInACallOfARank) {
  ASSERT_NO_FATAL_FAILURE(serve());
  EXPECT_OK(kvtide_rank_get_stats(rank));
  {
    const auto inside = enter_rank();
    const auto answer = on_rank(KVTIDE_EVENT_RANK_STATS);
    EXPECT_EQ(only(answer).as.rank_stats->order_errors, 0u);
    kvtide_batch* none = nullptr;
    EXPECT_EQ(kvtide_rank_await(rank, KVTIDE_EVENT_STEP_READY, 20, &none),
              KVTIDE_TIMEOUT);
  }
  EXPECT_EQ(poll_rank(), nullptr);
}

TEST_F(CInside, TurnsAwayASecondThreadInACallOfARank) {
  ASSERT_NO_FATAL_FAILURE(serve());
  auto made = std::uint64_t{77};
  {
    const auto inside = enter_rank();
    EXPECT_OK(kvtide_rank_unregister_kv(rank));
    EXPECT_OK(kvtide_rank_register_kv(rank, &memory));
    EXPECT_OK(kvtide_rank_begin_step(rank, 1, nullptr, 0));
    EXPECT_OK(kvtide_rank_end_step(rank, 1, nullptr, 0));
    EXPECT_OK(kvtide_rank_get_stats(rank));
    EXPECT_EQ(poll_rank(), nullptr);
    EXPECT_EQ(kvtide_rank_make_event(rank, &made), KVTIDE_OUT_OF_ORDER);
    EXPECT_EQ(kvtide_rank_record_event(rank, 1, &made), KVTIDE_OUT_OF_ORDER);
  }
  EXPECT_EQ(made, 77u);
  const auto events = poll_rank();
  ASSERT_EQ(kvtide_batch_size(events.get()), 6u) << "of what returned OK";
  for (std::size_t i = 0; i < 6; ++i) {
    const auto& event = *kvtide_batch_at(events.get(), i);
    EXPECT_EQ(event.kind, KVTIDE_EVENT_RANK_FAILED);
    EXPECT_EQ(event.as.failed.code, KVTIDE_OUT_OF_ORDER);
    EXPECT_THAT(event.as.failed.text, HasSubstr("two threads"));
  }
  run_step({}); // None of the calls had an effect.
}

} // namespace
} // namespace kvtide::test
