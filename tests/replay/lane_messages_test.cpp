// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/frame_stream.hpp"
#include "examples/replay/lane_messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace kvtide::replay {
namespace {

using ::testing::HasSubstr;

using json = nlohmann::json;

// As it comes out of the other end.
json sent(const json& message) {
  return json::from_cbor(json::to_cbor(message));
}

kv_work make_work() {
  auto res = kv_work{};
  res.writes = {{{0, 3, 2, 0, 16}, 0xfedcba9876543210u}, {{0, 4, 9, 5, 6}, 1}};
  res.checks = {{{{0, 1, 5, 0, 7}, 3}, 77, check_reason::finished, 12}};
  return res;
}

TEST(LaneMessages, CarryWork) {
  const auto shape = geometry{};
  const auto work = work_of(sent(to_message(make_work())), shape);
  ASSERT_EQ(work.writes.size(), 2u);
  EXPECT_EQ(work.writes[0].seed, 0xfedcba9876543210u);
  EXPECT_EQ(work.writes[1].part.index, 4u);
  EXPECT_EQ(work.writes[1].part.block, 9u);
  EXPECT_EQ(work.writes[1].part.first, 5);
  EXPECT_EQ(work.writes[1].part.last, 6);
  ASSERT_EQ(work.checks.size(), 1u);
  EXPECT_EQ(work.checks[0].span.part.block, 5u);
  EXPECT_EQ(work.checks[0].request, 77u);
  EXPECT_EQ(work.checks[0].reason, check_reason::finished);
  EXPECT_EQ(work.checks[0].number, 12u);
}

TEST(LaneMessages, RefuseWorkOutsideOfTheMemory) {
  auto shape = geometry{};
  shape.device_blocks = 9;
  const auto refuse = [&](const char* list, std::size_t at, json value) {
    auto message = sent(to_message(make_work()));
    message[list][at] = std::move(value);
    EXPECT_THROW(work_of(message, shape), stream_error) << list << at;
  };
  EXPECT_NO_THROW(work_of(sent(to_message(make_work())), shape));
  refuse("writes", 0, 1u);  // No such group.
  refuse("writes", 2, 0u);  // A hole.
  refuse("writes", 2, 10u); // Behind the last block.
  refuse("writes", 3, 17u);
  refuse("writes", 4, 17u);
  refuse("writes", 9, 7u); // Begins behind its end.
  refuse("writes", 5, -1);
  refuse("writes", 5, "seed");
  refuse("writes", 5, 1.5);
  refuse("checks", 7, 3u); // No such reason.
  auto shorter = sent(to_message(make_work()));
  shorter["writes"].erase(0);
  EXPECT_THROW(work_of(shorter, shape), stream_error);
  EXPECT_THROW(work_of(json{{"say", "compute"}}, shape), stream_error);
  EXPECT_THROW(work_of(json(1), shape), stream_error);
}

TEST(LaneMessages, CarryWhatWasFound) {
  auto tally = check_tally{};
  tally.compared_bytes = {1, 2, 3};
  tally.mismatches = {0, 0, 1};
  tally.first = mismatch{check_reason::finished,
                         7,
                         {0, 3, 2, 0, 0},
                         {0, 1, 1, 5},
                         53,
                         2,
                         std::byte{17},
                         std::byte{238},
                         99};
  const auto found = tally_of(sent(to_message(tally)));
  EXPECT_EQ(found.compared_bytes, tally.compared_bytes);
  EXPECT_EQ(found.mismatches, tally.mismatches);
  ASSERT_TRUE(found.first.has_value());
  EXPECT_EQ(to_string(*found.first), to_string(*tally.first));
  EXPECT_EQ(found.first->number, 99u);
  EXPECT_FALSE(tally_of(sent(to_message(check_tally{}))).first.has_value());
  auto broken = sent(to_message(tally));
  broken["compared"].push_back(1u);
  EXPECT_THROW((void)tally_of(broken), stream_error);
  broken = sent(to_message(tally));
  broken["first"][0] = 3u;
  EXPECT_THROW((void)tally_of(broken), stream_error);
}

TEST(LaneMessages, CarryStepsAndMemory) {
  const auto plan = std::string{"\0\xff plan", 7};
  const auto begin = sent(begin_message(5, plan));
  EXPECT_EQ(word_of(begin), "begin");
  EXPECT_EQ(step_of(begin), 5u);
  EXPECT_EQ(plan_of(begin), plan);
  EXPECT_EQ(plan_of(sent(begin_message(5, {}))), "");
  const auto ready = sent(to_message(5, readiness{true, 1'000}));
  EXPECT_EQ(step_of(ready), 5u);
  EXPECT_TRUE(readiness_of(ready).waits);
  EXPECT_EQ(readiness_of(ready).not_before, 1'000);
  EXPECT_EQ(end_of(sent(end_message(5, 70))), 70);
  auto known = kv_registered{};
  known.slots = 3;
  known.slot_bytes = 4'096;
  known.notes = {"a GPU", "huge pages"};
  const auto registered = registered_of(sent(to_message(known)));
  EXPECT_EQ(registered.slots, 3u);
  EXPECT_EQ(registered.slot_bytes, 4'096u);
  EXPECT_EQ(registered.notes, known.notes);
  EXPECT_EQ(greeting_of(sent(to_message(lane_greeting{~0ull}))).life, ~0ull);
  EXPECT_THROW((void)greeting_of(json{{"life", -1}}), stream_error);
  EXPECT_THROW((void)step_of(json::object()), stream_error);
  EXPECT_THROW((void)plan_of(json{{"plan", "text"}}), stream_error);
  EXPECT_EQ(word_of(json::array()), "");
  EXPECT_EQ(word_of(json{{"say", 5}}), "");
}

TEST(LaneMessages, NameTheOptionThatDiffers) {
  auto opts = replay_options{};
  const auto ours = hello_of(opts, 1);
  EXPECT_EQ(fault_of(ours, sent(hello_of(opts, 1))), "");
  EXPECT_THAT(fault_of(ours, sent(hello_of(opts, 2))), HasSubstr("\"rank\""));
  opts.shape.layers = 5;
  EXPECT_THAT(fault_of(ours, sent(hello_of(opts, 1))),
              HasSubstr("\"--layers\" is 2 in the rank's process and 5"));
  opts = {};
  opts.fingerprint = "other";
  EXPECT_THAT(fault_of(ours, sent(hello_of(opts, 1))),
              HasSubstr("--fingerprint"));
  auto later = ours;
  later["protocol"] = lane_protocol + 1;
  EXPECT_THAT(fault_of(ours, later), HasSubstr("protocol"));
  EXPECT_THAT(fault_of(ours, json(3)), HasSubstr("nothing"));
}

} // namespace
} // namespace kvtide::replay
