// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/http_server.hpp"
#include "tests/serve_http/running_server.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <random>
#include <string>

namespace serve {
namespace {

class HttpServer : public running_server {};

std::string code_of(const raw_answer& answer) {
  const auto json = nlohmann::json::parse(answer.body, nullptr, false);
  return json.is_object() ? json["error"]["code"].get<std::string>() : "";
}

TEST_F(HttpServer, AnswersACompletionAsAWhole) {
  start();
  auto client = raw_client{port()};
  client.send(post(R"({"prompt": "Hi", "max_tokens": 4, "cache_salt": "s"})"));
  const auto id = engine.wait_for_submits(1);
  EXPECT_EQ(engine.request(id).prompt, "Hi");
  EXPECT_EQ(engine.request(id).max_tokens, 4);
  EXPECT_EQ(engine.request(id).cache_salt, "s");
  engine.say(id, "ab");
  engine.say(id, "c\xff");
  engine.end(id, completion_end::length);
  const auto answer = client.receive();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.fields.at("content-type"), "application/json");
  const auto json = nlohmann::json::parse(answer.body);
  EXPECT_EQ(json["choices"][0]["text"], "abc\u00ff");
  EXPECT_EQ(json["usage"]["completion_tokens"], 4);
}

TEST_F(HttpServer, StreamsEachPieceWhenItComes) {
  start();
  auto client = raw_client{port()};
  client.send(post(R"({"prompt": "Hi", "stream": true})"));
  const auto id = engine.wait_for_submits(1);
  engine.say(id, "ab");
  EXPECT_TRUE(client.await(R"("text":"ab")"));
  engine.say(id, "c");
  EXPECT_TRUE(client.await(R"("text":"c")"));
  engine.end(id, completion_end::length);
  const auto answer = client.receive();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.fields.at("content-type"), "text/event-stream");
  EXPECT_EQ(answer.fields.at("transfer-encoding"), "chunked");
  EXPECT_NE(answer.body.find(R"("finish_reason":"length")"), std::string::npos);
  EXPECT_EQ(answer.body.substr(answer.body.size() - 14), "data: [DONE]\n\n");
}

TEST_F(HttpServer, KeepsTheConnectionAfterAnAnswerAndAStream) {
  start();
  auto client = raw_client{port()};
  client.send(get("/healthz"));
  EXPECT_EQ(client.receive().status, 200);
  client.send(post(R"({"prompt": "Hi", "stream": true})"));
  const auto id = engine.wait_for_submits(1);
  engine.say(id, "a");
  engine.end(id, completion_end::length);
  EXPECT_EQ(client.receive().status, 200);
  client.send(post("{}"));
  EXPECT_EQ(client.receive().status, 422);
  client.send(get("/healthz", "Connection: close\r\n"));
  const auto last = client.receive();
  EXPECT_EQ(last.status, 200);
  EXPECT_EQ(last.fields.at("connection"), "close");
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServer, TakesTargetsInAbsoluteForm) {
  start();
  EXPECT_EQ(ask(get("http://x/healthz")).body, "{\"status\":\"ok\"}\n");
}

TEST_F(HttpServer, TakesNoBodyInACodingThatItDoesNotKnow) {
  start();
  for (const auto* coding :
       {"gzip", "gzip, chunked", "chunked, gzip", "identity",
        "chunked, chunked", "gzip\r\nTransfer-Encoding: chunked"}) {
    auto client = raw_client{port()};
    // What looks like a second request is a part of the body.
    client.send(std::string{"POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
                            "Transfer-Encoding: "}
                + coding + "\r\n\r\n" + get("/healthz"));
    const auto answer = client.receive();
    EXPECT_TRUE(answer.status == 501 || answer.status == 400)
      << coding << ": " << answer.status;
    EXPECT_EQ(answer.fields.at("connection"), "close") << coding;
    EXPECT_TRUE(client.closed()) << coding;
  }
  EXPECT_EQ(ask("POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
                "Transfer-Encoding: gzip\r\n\r\n")
              .status,
            501);
  EXPECT_EQ(ask("POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
                "Transfer-Encoding: gzip, chunked\r\n\r\n")
              .status,
            501);
  EXPECT_EQ(ask("POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
                "Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
              .status,
            422);
}

TEST_F(HttpServer, ServesRequestsThatWereSentAheadInTheirOrder) {
  start();
  auto client = raw_client{port()};
  client.send(post(R"({"prompt": "1"})") + get("/healthz")
              + post(R"({"prompt": "2"})") + get("/nowhere"));
  const auto first = engine.wait_for_submits(1);
  EXPECT_EQ(engine.request(first).prompt, "1");
  engine.say(first, "one");
  engine.end(first, completion_end::length);
  EXPECT_NE(client.receive().body.find("\"one\""), std::string::npos);
  EXPECT_EQ(client.receive().body, "{\"status\":\"ok\"}\n");
  const auto second = engine.wait_for_submits(2);
  EXPECT_EQ(engine.request(second).prompt, "2");
  engine.say(second, "two");
  engine.end(second, completion_end::length);
  EXPECT_NE(client.receive().body.find("\"two\""), std::string::npos);
  EXPECT_EQ(client.receive().status, 404);
}

TEST_F(HttpServer, SaysWhatIsWrongWithARequest) {
  start();
  const auto checked
    = [&](const std::string& request, int status, const std::string& code) {
        const auto answer = ask(request);
        EXPECT_EQ(answer.status, status) << request;
        EXPECT_EQ(code_of(answer), code) << request;
        return answer;
      };
  checked(post("{"), 400, "malformed_json");
  checked("NONSENSE\r\n\r\n", 400, "malformed_http");
  checked("GET / HTTP/9.9\r\n\r\n", 400, "malformed_http");
  checked("GET /healthz HTTP/1.1\r\n\r\n", 400, "malformed_http");
  checked(get("/healthz", "Host: other\r\n"), 400, "malformed_http");
  checked(get("/v2"), 404, "not_found");
  EXPECT_EQ(checked(get("/v1/completions"), 405, "method_not_allowed")
              .fields.at("allow"),
            "POST");
  checked("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Type: text/a"
          "\r\nContent-Length: 2\r\n\r\n{}",
          415, "not_json");
  checked(post(R"({"prompt": "a", "max_tokens": -3})"), 422, "invalid_field");
  checked(post("{\"prompt\": \"" + std::string(5'000, 'a') + "\"}"), 422,
          "prompt_too_long");
  // Two lengths: the way to smuggle a request past a proxy.
  checked("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n"
          "Transfer-Encoding: chunked\r\n\r\n",
          400, "malformed_http");
}

TEST_F(HttpServer, PassesOnWhyTheEngineRefuses) {
  start();
  const auto refused = [&](kvtide::ec code) {
    engine.refuse_with({code, "So says the engine."});
    auto answer = ask(post(R"({"prompt": "a"})"));
    EXPECT_NE(answer.body.find("So says the engine."), std::string::npos);
    return answer;
  };
  const auto full = refused(kvtide::ec::out_of_memory);
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.fields.at("retry-after"), "1");
  EXPECT_EQ(refused(kvtide::ec::invalid_argument).status, 422);
  EXPECT_EQ(refused(kvtide::ec::shutting_down).status, 503);
  EXPECT_EQ(refused(kvtide::ec::unsupported).status, 500);
  EXPECT_EQ(metric("serve_open_completions"), 0);
}

TEST_F(HttpServer, TakesChunkedBodiesAndBodiesInPieces) {
  start();
  auto client = raw_client{port()};
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
              "Transfer-Encoding: chunked\r\n\r\n9\r\n{\"prompt\"\r\n");
  client.send("6\r\n: \"ab\"\r\n1\r\n}\r\n0\r\n\r\n");
  EXPECT_EQ(engine.request(engine.wait_for_submits(1)).prompt, "ab");
}

TEST_F(HttpServer, AsksForTheBodyOfWhoeverWaitsForThat) {
  start();
  auto client = raw_client{port()};
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
              "Content-Length: 15\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send(R"({"prompt": "a"})");
  const auto id = engine.wait_for_submits(1);
  engine.say(id, "b");
  engine.end(id, completion_end::length);
  EXPECT_EQ(client.receive().status, 200);
}

TEST_F(HttpServer, AnswersHeadWithoutABody) {
  start();
  auto client = raw_client{port()};
  client.send("HEAD /healthz HTTP/1.1\r\nHost: t\r\n\r\n" + get("/healthz"));
  EXPECT_EQ(client.receive(true).fields.at("content-length"), "16");
  EXPECT_EQ(client.receive().body, "{\"status\":\"ok\"}\n");
}

TEST_F(HttpServer, ServesHttp10UntilTheEndOfTheConnection) {
  start();
  auto client = raw_client{port()};
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Length: 31\r\n\r\n"
              R"({"prompt": "a", "stream": true})");
  const auto id = engine.wait_for_submits(1);
  engine.say(id, "b");
  engine.end(id, completion_end::length);
  const auto answer = client.receive();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.fields.count("transfer-encoding"), 0u);
  EXPECT_EQ(answer.body.substr(0, 6), "data: ");
  EXPECT_EQ(answer.body.substr(answer.body.size() - 14), "data: [DONE]\n\n");
}

// Whole requests with bytes changed, left out and repeated.
TEST_F(HttpServer, OutlivesGarbage) {
  opts.request_timeout = std::chrono::hours{1};
  start();
  const auto good = post(R"({"prompt": "abc", "max_tokens": 4})")
                  + get("/metrics", "Connection: close\r\n");
  for (auto seed = 1u; seed <= 400; ++seed) {
    auto random = std::mt19937{seed};
    auto bytes = good;
    for (auto changes = 1 + random() % 8; changes > 0; --changes) {
      const auto at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 8);
          break;
        case 2:
          bytes.insert(at, bytes.substr(at, 1 + random() % 64));
          break;
        default:
          bytes[at] = "\r\n: 0\xff\"{"[random() % 8];
          break;
      }
    }
    auto client = raw_client{port()};
    client.send(bytes);
    client.close_sending();
    while (client.receive().status != 0) {
      // All answers, until the server closes.
    }
    EXPECT_TRUE(client.closed()) << "seed " << seed;
  }
  EXPECT_EQ(ask(get("/healthz")).status, 200);
  EXPECT_TRUE(await_metric("serve_connections", 1));
  EXPECT_EQ(metric("serve_open_completions"), 0);
}

TEST_F(HttpServer, SaysWhyItCannotListen) {
  start();
  auto taken = server_options{};
  taken.port = port();
  const auto second = http_server::listen(taken, engine);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.failure().code, kvtide::ec::invalid_options);
  auto nowhere = server_options{};
  nowhere.address = "localhost";
  EXPECT_FALSE(http_server::listen(nowhere, engine));
}

} // namespace
} // namespace serve
