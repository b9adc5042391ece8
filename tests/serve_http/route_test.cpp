// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/route.hpp"

#include <gtest/gtest.h>

#include <string>

namespace serve {
namespace {

constexpr auto json = "application/json";
constexpr auto body = R"({"prompt": "a"})";

routed_call routed(std::string_view method, std::string_view target,
                   std::string_view type = "") {
  return route({method, target, type}, body, completion_limits{});
}

unsigned status(const routed_call& call) {
  const auto* failure = std::get_if<http_answer>(&call);
  return failure == nullptr ? 200 : failure->status;
}

TEST(Route, FindsTheThreePages) {
  EXPECT_TRUE(std::holds_alternative<completion_call>(
    routed("POST", "/v1/completions", json)));
  EXPECT_TRUE(std::holds_alternative<metrics_call>(routed("GET", "/metrics")));
  EXPECT_TRUE(std::holds_alternative<health_call>(routed("GET", "/healthz")));
  EXPECT_TRUE(std::holds_alternative<health_call>(routed("HEAD", "/healthz")));
}

TEST(Route, IgnoresTheQuery) {
  EXPECT_TRUE(
    std::holds_alternative<metrics_call>(routed("GET", "/metrics?all=1")));
}

TEST(Route, TakesTargetsInAbsoluteForm) {
  for (const auto* target :
       {"http://x/healthz", "HTTP://x.example:8000/healthz?a=b",
        "https://[::1]/healthz", "http://user@x/healthz"})
    EXPECT_TRUE(std::holds_alternative<health_call>(routed("GET", target)))
      << target;
  EXPECT_TRUE(std::holds_alternative<completion_call>(
    routed("POST", "http://x/v1/completions", json)));
  for (const auto* target :
       {"http://", "http:///healthz", "http://healthz", "http://x", "http:/x",
        "http://x?/healthz", "ftp://x/healthz", "x/healthz"})
    EXPECT_EQ(status(routed("GET", target)), 404u) << target;
}

TEST(Route, FindsNothingElsewhere) {
  for (const auto* target : {"/", "", "*", "/v1/completions/",
                             "/v1/chat/completions", "/metricsx", "//healthz"})
    EXPECT_EQ(status(routed("GET", target)), 404u) << target;
}

TEST(Route, SaysWhichMethodsAreAllowed) {
  const auto call = routed("GET", "/v1/completions");
  EXPECT_EQ(status(call), 405u);
  EXPECT_EQ(std::get<http_answer>(call).allow, "POST");
  const auto other = routed("POST", "/metrics", json);
  EXPECT_EQ(status(other), 405u);
  EXPECT_EQ(std::get<http_answer>(other).allow, "GET, HEAD");
  EXPECT_EQ(status(routed("DELETE", "/healthz")), 405u);
  EXPECT_EQ(status(routed("BREW", "/healthz")), 405u);
}

TEST(Route, TakesJsonOnly) {
  const auto typed = [](std::string_view type) {
    return status(routed("POST", "/v1/completions", type));
  };
  EXPECT_EQ(typed("application/json"), 200u);
  EXPECT_EQ(typed("Application/JSON ; charset=utf-8"), 200u);
  EXPECT_EQ(typed(""), 200u);
  EXPECT_EQ(typed("text/plain"), 415u);
  EXPECT_EQ(typed("application/x-www-form-urlencoded"), 415u);
  EXPECT_EQ(typed("application/jsonx"), 415u);
}

} // namespace
} // namespace serve
