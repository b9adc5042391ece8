// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/completion_body.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace serve {
namespace {

const auto limits = completion_limits{64, 8};

completion_call accepted(const std::string& body) {
  const auto read = read_completion_body(body, limits);
  if (const auto* failure = std::get_if<http_answer>(&read)) {
    ADD_FAILURE() << body << " is refused: " << failure->body;
    return {};
  }
  return std::get<completion_call>(read);
}

// "<status> <code>" of what is refused; the sentence must not be empty.
std::string refused(const std::string& body) {
  const auto read = read_completion_body(body, limits);
  const auto* failure = std::get_if<http_answer>(&read);
  if (failure == nullptr)
    return "accepted";
  const auto json = nlohmann::json::parse(failure->body);
  EXPECT_GT(json["error"]["message"].get<std::string>().size(), 20u);
  return std::to_string(failure->status) + " "
       + json["error"]["code"].get<std::string>();
}

TEST(CompletionBody, ReadsAllFields) {
  const auto call = accepted(R"({"prompt": "Hi", "max_tokens": 3,
    "stream": true, "cache_salt": "me", "model": "any", "user": "u",
    "temperature": 0.0, "n": 1})");
  EXPECT_EQ(call.request.prompt, "Hi");
  EXPECT_EQ(call.request.max_tokens, 3);
  EXPECT_EQ(call.request.cache_salt, "me");
  EXPECT_TRUE(call.stream);
}

TEST(CompletionBody, HasDefaults) {
  const auto call = accepted(R"({"prompt": "Hi"})");
  EXPECT_EQ(call.request.max_tokens, 16);
  EXPECT_EQ(call.request.cache_salt, "");
  EXPECT_FALSE(call.stream);
}

TEST(CompletionBody, TakesThePromptsBytesAsTokens) {
  EXPECT_EQ(accepted("{\"prompt\": \"\xc3\xa9\"}").request.prompt, "\xc3\xa9");
  EXPECT_EQ(accepted(R"({"prompt": "\u00e9"})").request.prompt, "\xc3\xa9");
  EXPECT_EQ(accepted(R"({"prompt": [104, 0, 255]})").request.prompt,
            std::string("h\0\xff", 3));
}

TEST(CompletionBody, SaysWhichFieldHasANumberBeyondAllBounds) {
  const auto sentence = [](const std::string& body) {
    const auto read = read_completion_body(body, limits);
    const auto* failure = std::get_if<http_answer>(&read);
    return failure == nullptr ? "accepted" : failure->body;
  };
  const auto body = std::string{R"({"prompt": "Hi", "max_tokens": 1e999})"};
  EXPECT_EQ(refused(body), "422 invalid_field");
  EXPECT_NE(
    sentence(body).find("'max_tokens' must be a whole number from 1 to 63"),
    std::string::npos)
    << sentence(body);
  const auto token = std::string{R"({"prompt": [1, -1e999]})"};
  EXPECT_NE(sentence(token).find("'prompt' must be"), std::string::npos);
  EXPECT_NE(sentence(R"({"temperature": 1e999, "n": 1})")
              .find("'temperature' must be 0"),
            std::string::npos);
  EXPECT_EQ(refused(R"({"x": {"max_tokens": 1e999}})"), "422 unknown_field");
  EXPECT_EQ(refused(R"([{"max_tokens": 1e999}])"), "422 not_an_object");
  EXPECT_EQ(refused("1e999"), "422 not_an_object");
}

TEST(CompletionBody, RefusesWhatIsNotJson) {
  EXPECT_EQ(refused(""), "400 malformed_json");
  EXPECT_EQ(refused("{\"prompt\": \"Hi\""), "400 malformed_json");
  EXPECT_EQ(refused("{\"prompt\": \"Hi\"} x"), "400 malformed_json");
  EXPECT_EQ(refused("{\"prompt\": \"\xff\"}"), "400 malformed_json");
}

TEST(CompletionBody, RefusesDeepNestsWithoutRunningOutOfStack) {
  EXPECT_EQ(refused(std::string(200'000, '[')), "400 malformed_json");
  EXPECT_EQ(refused(std::string(100'000, '[') + std::string(100'000, ']')),
            "422 not_an_object");
}

TEST(CompletionBody, RefusesWrongTypes) {
  EXPECT_EQ(refused("[]"), "422 not_an_object");
  EXPECT_EQ(refused(R"({"prompt": 1})"), "422 invalid_field");
  EXPECT_EQ(refused(R"({"prompt": null})"), "422 invalid_field");
  EXPECT_EQ(refused(R"({"prompt": ["a"]})"), "422 invalid_field");
  EXPECT_EQ(refused(R"({"prompt": [256]})"), "422 invalid_field");
  EXPECT_EQ(refused(R"({"prompt": [-1]})"), "422 invalid_field");
  EXPECT_EQ(refused(R"({"prompt": "a", "stream": 1})"), "422 invalid_field");
  EXPECT_EQ(refused(R"({"prompt": "a", "cache_salt": 1})"),
            "422 invalid_field");
  EXPECT_EQ(refused(R"({"prompt": "a", "model": 1})"), "422 invalid_field");
}

TEST(CompletionBody, RefusesNumbersOutOfRange) {
  for (const auto* number :
       {"0", "-1", "1.5", "64", "4294967297", "18446744073709551615",
        "99999999999999999999", "1e3", "\"3\"", "true", "null"})
    EXPECT_EQ(
      refused(std::string{R"({"prompt": "a", "max_tokens": )"} + number + "}"),
      "422 invalid_field")
      << number;
}

TEST(CompletionBody, RefusesWhatItCannotHonour) {
  EXPECT_EQ(refused(R"({"prompt": "a", "temperature": 0.7})"),
            "422 invalid_field");
  EXPECT_EQ(refused(R"({"prompt": "a", "n": 2})"), "422 invalid_field");
  EXPECT_EQ(refused(R"({"prompt": "a", "logprobs": 5})"), "422 unknown_field");
  EXPECT_EQ(refused(R"({"prompt": "a", "prompt": "b"})"),
            "422 duplicate_field");
}

TEST(CompletionBody, RefusesEmptyPrompts) {
  EXPECT_EQ(refused("{}"), "422 no_prompt");
  EXPECT_EQ(refused(R"({"prompt": ""})"), "422 no_prompt");
  EXPECT_EQ(refused(R"({"prompt": []})"), "422 no_prompt");
}

TEST(CompletionBody, BoundsPromptAndAnswerTogether) {
  const auto body = [](std::size_t prompt, int max_tokens) {
    return "{\"prompt\": \"" + std::string(prompt, 'a')
         + "\", \"max_tokens\": " + std::to_string(max_tokens) + "}";
  };
  EXPECT_EQ(accepted(body(60, 4)).request.prompt.size(), 60u);
  EXPECT_EQ(refused(body(61, 4)), "422 prompt_too_long");
  EXPECT_EQ(accepted(body(1, 63)).request.max_tokens, 63);
}

TEST(CompletionBody, BoundsTheSalt) {
  EXPECT_EQ(
    accepted(R"({"prompt": "a", "cache_salt": "12345678"})").request.cache_salt,
    "12345678");
  EXPECT_EQ(refused(R"({"prompt": "a", "cache_salt": "123456789"})"),
            "422 invalid_field");
}

TEST(CompletionBody, NamesUnknownFieldsWithoutEchoingLongOnes) {
  const auto body = "{\"" + std::string(10'000, 'x') + "\": 1}";
  const auto read = read_completion_body(body, limits);
  EXPECT_LT(std::get<http_answer>(read).body.size(), 400u);
}

} // namespace
} // namespace serve
