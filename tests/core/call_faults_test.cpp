// SPDX-License-Identifier: Apache-2.0

#include "core/call_faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

using ::testing::HasSubstr;

namespace kvtide::core {
namespace {

constexpr request_id R = 7;

add_request add(token_count prompt, token_count known, token_count cap) {
  auto out = add_request{};
  out.request = R;
  out.prompt_tokens = prompt;
  out.known_tokens = known;
  out.cap = cap;
  return out;
}

finish_call finish(token_count known, token_count computed) {
  return {R, finish_reason::stop, known, computed};
}

kv_memory memory(rank_id rank, std::uint32_t writer, std::uint32_t writers) {
  auto out = kv_memory{};
  out.rank = rank;
  out.writer = writer;
  out.writers = writers;
  out.model_fingerprint = "m";
  return out;
}

TEST(CallFaults, ARequestHasAPromptThatIsKnownAndACap) {
  EXPECT_EQ(fault_of(add(0, 0, 0)).code, ec::none);
  EXPECT_EQ(fault_of(add(4, max_tokens, no_cap)).code, ec::none);
  for (const auto& wrong :
       {add(-1, 4, 0), add(5, 4, 0), add(4, max_tokens + 1, 0),
        add(max_tokens + 1, max_tokens + 2, 0), add(4, 4, -1)}) {
    const auto fault = fault_of(wrong);
    EXPECT_EQ(fault.code, ec::invalid_argument);
    EXPECT_THAT(fault.text, HasSubstr("request 7: prompt_tokens"));
  }
}

TEST(CallFaults, ALookupAsksForKnownTokens) {
  EXPECT_EQ(fault_of(lookup_row{R, 0, 0}).code, ec::none);
  EXPECT_EQ(fault_of(lookup_row{R, 4, 4}).code, ec::none);
  EXPECT_EQ(fault_of(lookup_row{R, 0, max_tokens}).code, ec::none);
  for (const auto& wrong : {lookup_row{R, -1, 4}, lookup_row{R, 5, 4},
                            lookup_row{R, 0, max_tokens + 1}}) {
    const auto fault = fault_of(wrong);
    EXPECT_EQ(fault.code, ec::invalid_argument);
    EXPECT_THAT(fault.text, HasSubstr("request 7: local must be"));
  }
}

TEST(CallFaults, AnEndSaysHowFarItCame) {
  EXPECT_EQ(fault_of(finish(0, 0)).code, ec::none);
  EXPECT_EQ(fault_of(finish(max_tokens, max_tokens)).code, ec::none);
  for (const auto& wrong :
       {finish(-1, 0), finish(0, -1), finish(max_tokens + 1, 0),
        finish(0, max_tokens + 1)}) {
    const auto fault = fault_of(wrong);
    EXPECT_EQ(fault.code, ec::invalid_argument);
    EXPECT_THAT(fault.text, HasSubstr("request 7 goes on"));
  }
}

TEST(CallFaults, MemoryIsThatOfTheRankAndOfTheModel) {
  EXPECT_EQ(fault_of(memory(1, 0, 1), 1, "m").code, ec::none);
  EXPECT_EQ(fault_of(memory(1, 2, 2), 1, "m").code, ec::none)
    << "it never writes";
  const auto check = [](const kv_memory& wrong, const char* text) {
    const auto fault = fault_of(wrong, 1, "m");
    EXPECT_EQ(fault.code, ec::invalid_argument);
    EXPECT_THAT(fault.text, HasSubstr(text));
  };
  check(memory(0, 0, 1), "kv_memory::rank is 0, but this is rank 1");
  check(memory(1, 0, 0), "kv_memory::writer is 0 of 0");
  check(memory(1, 3, 2), "kv_memory::writer is 3 of 2");
  check(memory(1, 1, 1), "kv_memory::writer is 1 of 1");
  auto other = memory(1, 0, 1);
  other.model_fingerprint = "n";
  check(other, "is 'n', but options::model_fingerprint is 'm'");
}

TEST(CallFaults, StepsCountUpByOne) {
  EXPECT_EQ(fault_of_step(8, 7).code, ec::none);
  for (step_id step : {6u, 7u, 9u}) {
    const auto fault = fault_of_step(step, 7);
    EXPECT_EQ(fault.code, ec::out_of_order);
    EXPECT_EQ(fault.text, "step " + std::to_string(step)
                            + " came after step 7; count steps up by one");
  }
}

TEST(CallFaults, OnlySimulatedTimeIsMovedAndOnlyForward) {
  constexpr auto simulated = device_kind::host_virtual;
  EXPECT_EQ(fault_of_advance(simulated, 5, 5).code, ec::none);
  EXPECT_EQ(fault_of_advance(simulated, 5, 4).code, ec::invalid_argument);
  EXPECT_EQ(fault_of_advance(device_kind::host, 5, 6).code, ec::unsupported);
}

TEST(CallFaults, SimulatedTimeEndsBeforeNever) {
  constexpr auto simulated = device_kind::host_virtual;
  EXPECT_EQ(fault_of_advance(simulated, 5, never - 1).code, ec::none);
  const auto fault = fault_of_advance(simulated, 5, never);
  EXPECT_EQ(fault.code, ec::invalid_argument);
  EXPECT_THAT(fault.text, HasSubstr("does not go to `never`"));
}

TEST(CallFaults, SaysWhatTheCallerFoundOut) {
  EXPECT_EQ(bad_load(R, 4).code, ec::invalid_argument);
  EXPECT_THAT(bad_load(R, 4).text,
              HasSubstr("request 7: external must be at most the 4 tokens"));
  EXPECT_EQ(unknown_promise(3).code, ec::unknown_promise);
  EXPECT_THAT(unknown_promise(3).text, HasSubstr("promise 3 was used"));
  EXPECT_EQ(too_late_to_add().code, ec::shutting_down);
  EXPECT_EQ(stopping_already().code, ec::shutting_down);
  EXPECT_EQ(no_scheduler().code, ec::shutting_down);
  EXPECT_THAT(no_scheduler().text, HasSubstr("start another one"));
  EXPECT_EQ(no_worker().code, ec::rank_unavailable);
  EXPECT_THAT(no_worker().text, HasSubstr("call runtime::restart_rank"));
  EXPECT_EQ(steps_alone().code, ec::scheduler_unreachable);
  EXPECT_THAT(steps_alone().text, HasSubstr("steps go on without the cache"));
}

} // namespace
} // namespace kvtide::core
