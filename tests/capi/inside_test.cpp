// SPDX-License-Identifier: Apache-2.0

/// @file
/// What C hears when actors die. No caller of
/// kvtide.h can bring that about, so these tests reach behind it, and link the
/// static library.

#include "capi/handles.hpp"
#include "tests/capi/c_world.hpp"
#include "tests/support/runtime_access.hpp"

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <cstdint>

namespace kvtide::test {
namespace {

class CInside : public CWorld {
protected:
  using access = runtime_access;
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
  const auto failed = on_engine(KVTIDE_EVENT_CALL_FAILED);
  EXPECT_EQ(only(failed).ticket, ticket);
  EXPECT_EQ(only(failed).as.failed.code, KVTIDE_SHUTTING_DOWN);
}

} // namespace
} // namespace kvtide::test
