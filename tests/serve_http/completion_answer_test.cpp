// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/completion_answer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace serve {
namespace {

const auto head = completion_head{7, 1'700'000'000, 5};

TEST(CompletionAnswer, IsOneObjectWithChoicesAndUsage) {
  const auto json = nlohmann::json::parse(completion_json(head, "a\xff"));
  EXPECT_EQ(json["id"], "cmpl-7");
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["created"], 1'700'000'000);
  ASSERT_EQ(json["choices"].size(), 1u);
  EXPECT_EQ(json["choices"][0]["text"], "a\u00ff");
  EXPECT_EQ(json["choices"][0]["index"], 0);
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(json["usage"]["completion_tokens"], 2);
  EXPECT_EQ(json["usage"]["total_tokens"], 7);
}

TEST(CompletionAnswer, HasAnEventPerPiece) {
  const auto event = piece_event(head, "ab\n");
  ASSERT_EQ(event.substr(0, 6), "data: ");
  ASSERT_EQ(event.substr(event.size() - 2), "\n\n");
  EXPECT_EQ(event.find('\n'), event.size() - 2) << "ends an event too early";
  const auto json = nlohmann::json::parse(event.substr(6));
  EXPECT_EQ(json["choices"][0]["text"], "ab\n");
  EXPECT_TRUE(json["choices"][0]["finish_reason"].is_null());
  EXPECT_FALSE(json.contains("usage"));
}

TEST(CompletionAnswer, EndsAStreamWithReasonUsageAndDone) {
  const auto events = end_events(head, 3);
  const auto split = events.find("\n\n");
  const auto json = nlohmann::json::parse(events.substr(6, split - 6));
  EXPECT_EQ(json["choices"][0]["text"], "");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["completion_tokens"], 3);
  EXPECT_EQ(events.substr(split + 2), "data: [DONE]\n\n");
}

TEST(CompletionAnswer, SaysInTheStreamWhyItIsCutOff) {
  const auto event = error_event("shutting_down", "Come \"back\".");
  const auto json = nlohmann::json::parse(event.substr(6));
  EXPECT_EQ(json["error"]["code"], "shutting_down");
  EXPECT_EQ(json["error"]["message"], "Come \"back\".");
}

TEST(CompletionAnswer, FramesChunksInHexadecimal) {
  EXPECT_EQ(to_chunk(std::string(26, 'x')),
            "1a\r\n" + std::string(26, 'x') + "\r\n");
}

} // namespace
} // namespace serve
