// SPDX-License-Identifier: Apache-2.0

// What one client can take of the server.

#include "tests/serve_http/running_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

namespace serve {
namespace {

class Limits : public running_server {};

std::string dropped(const std::string& why) {
  return "serve_dropped_clients_total{why=\"" + why + "\"}";
}

TEST_F(Limits, OfTheBodyAreStatus413) {
  opts.max_body_bytes = 100;
  start();
  // Before the body is sent, and with a length that nobody knows before.
  const auto known = ask("POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
                         "Content-Length: 101\r\n\r\n");
  EXPECT_EQ(known.status, 413);
  EXPECT_NE(known.body.find("100 bytes"), std::string::npos);
  EXPECT_EQ(known.fields.at("connection"), "close");
  EXPECT_EQ(ask("POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
                "Transfer-Encoding: chunked\r\n\r\n65\r\n"
                + std::string(101, ' '))
              .status,
            413);
  EXPECT_EQ(ask("POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
                "Content-Length: 18446744073709551615\r\n\r\n")
              .status,
            413);
  EXPECT_EQ(ask(post(std::string(100, ' '))).status, 400) << "fits";
}

TEST_F(Limits, OfTheHeaderAreStatus431) {
  opts.max_header_bytes = 1'000;
  start();
  EXPECT_EQ(ask(get("/healthz", "X: " + std::string(800, 'x') + "\r\n")).status,
            200);
  EXPECT_EQ(
    ask(get("/healthz", "X: " + std::string(1'000, 'x') + "\r\n")).status, 431);
  EXPECT_EQ(ask("GET /" + std::string(2'000, 'x')).status, 431)
    << "without an end";
  auto fields = std::string{};
  for (auto i = 0; i < 500; ++i)
    fields += "A: b\r\n";
  EXPECT_EQ(ask(get("/healthz", fields)).status, 431);
}

TEST_F(Limits, OfTheTimeForARequestAreStatus408) {
  opts.request_timeout = std::chrono::milliseconds{30};
  start();
  auto client = raw_client{port()};
  client.send(post(R"({"prompt": "a"})").substr(0, 60));
  const auto answer = client.receive();
  EXPECT_EQ(answer.status, 408);
  EXPECT_TRUE(client.closed());
  // The one that asks may be too slow itself.
  EXPECT_TRUE(await([&] { return metric(dropped("slow_request")) >= 1; }));
}

TEST_F(Limits, OfIdleConnectionsAreJustTheirEnd) {
  opts.idle_timeout = std::chrono::milliseconds{30};
  start();
  auto client = raw_client{port()};
  client.send(get("/healthz"));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(client.closed());
}

TEST_F(Limits, OfTimeDoNotCountWhileACompletionRuns) {
  opts.request_timeout = std::chrono::milliseconds{30};
  opts.idle_timeout = std::chrono::milliseconds{30};
  start();
  // On a busy machine the client itself may be too slow.
  auto waits = std::optional<raw_client>{};
  auto id = completion_id{0};
  EXPECT_TRUE(await([&] {
    waits.emplace(port());
    waits->send(post(R"({"prompt": "a"})"));
    id = engine.wait_for_submits(1, std::chrono::seconds{1});
    return id != 0;
  }));
  auto idles = raw_client{port()};
  // Started later, so it ends later.
  EXPECT_TRUE(idles.closed());
  engine.say(id, "b");
  engine.end(id, completion_end::length);
  EXPECT_EQ(waits->receive().status, 200);
}

TEST_F(Limits, OfConnectionsAreStatus503) {
  opts.max_connections = 1;
  start();
  auto first = raw_client{port()};
  first.send(get("/healthz"));
  EXPECT_EQ(first.receive().status, 200);
  auto second = raw_client{port()};
  const auto answer = second.receive();
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("too_many_connections"), std::string::npos);
  EXPECT_TRUE(second.closed());
  first.send(get("/metrics"));
  EXPECT_NE(first.receive().body.find("serve_refused_connections_total 1\n"),
            std::string::npos);
}

TEST_F(Limits, OfUnsentBytesAbortTheCompletionOfASlowReader) {
  opts.max_unsent_bytes = 100'000;
  opts.socket_send_bytes = 4'096;
  start();
  auto slow = raw_client{port(), 4'096};
  slow.send(post(R"({"prompt": "a", "stream": true})"));
  const auto id = engine.wait_for_submits(1);
  auto quick = raw_client{port()};
  quick.send(post(R"({"prompt": "b", "stream": true})"));
  const auto other = engine.wait_for_submits(2);
  // The engine is not held up: all of this returns at once.
  auto pieces = 0;
  for (; pieces < 1'000 && !engine.aborted(id); ++pieces) {
    engine.say(id, std::string(1'000, 'x'));
    engine.say(other, "y");
    ASSERT_TRUE(quick.skip("\"y\""));
  }
  EXPECT_GT(pieces, 50);
  EXPECT_LT(pieces, 1'000);
  EXPECT_EQ(metric(dropped("slow_reader")), 1);
  engine.end(other, completion_end::length);
  EXPECT_TRUE(quick.skip("[DONE]"));
}

TEST_F(Limits, OfTimeToReadAbortTheCompletionOfASlowReader) {
  opts.max_unsent_bytes = std::size_t{64} << 20;
  opts.socket_send_bytes = 4'096;
  opts.write_timeout = std::chrono::milliseconds{30};
  start();
  auto slow = raw_client{port(), 4'096};
  slow.send(post(R"({"prompt": "a", "stream": true})"));
  const auto id = engine.wait_for_submits(1);
  engine.say(id, std::string(1'000'000, 'x'));
  EXPECT_TRUE(engine.wait_for_abort(id));
  EXPECT_EQ(metric(dropped("slow_reader")), 1);
}

TEST_F(Limits, OfUnsentBytesCountThoseThatTheKernelHolds) {
  opts.max_unsent_bytes = 4'096;
  start();
  auto slow = raw_client{port(), 4'096};
  slow.send(post(R"({"prompt": "a", "stream": true})"));
  const auto id = engine.wait_for_submits(1);
  auto quick = raw_client{port()};
  quick.send(post(R"({"prompt": "b", "stream": true})"));
  const auto other = engine.wait_for_submits(2);
  // A send buffer that the system sizes takes all of this, and more.
  auto pieces = 0;
  for (; pieces < 40 && !engine.aborted(id); ++pieces) {
    engine.say(id, std::string(1'000, 'x'));
    engine.say(other, "y");
    ASSERT_TRUE(quick.skip("\"y\""));
  }
  EXPECT_GT(pieces, 4);
  EXPECT_LT(pieces, 40);
  EXPECT_EQ(metric(dropped("slow_reader")), 1);
}

TEST_F(Limits, OfTimeToReadCountWhatTheKernelHolds) {
  opts.write_timeout = std::chrono::milliseconds{30};
  start();
  auto slow = raw_client{port(), 4'096};
  slow.send(post(R"({"prompt": "a", "stream": true})"));
  const auto id = engine.wait_for_submits(1);
  engine.say(id, std::string(40'000, 'x'));
  EXPECT_TRUE(engine.wait_for_abort(id));
  EXPECT_EQ(metric(dropped("slow_reader")), 1);
}

TEST_F(Limits, OfRequestsSentAheadAbortTheCompletion) {
  opts.max_pipelined_bytes = 10'000;
  start();
  auto client = raw_client{port()};
  client.send(post(R"({"prompt": "a"})"));
  const auto id = engine.wait_for_submits(1);
  for (auto i = 0; i < 10'000 && client.send(get("/healthz")); ++i) {
    // Until it is hung up on.
  }
  EXPECT_TRUE(engine.wait_for_abort(id));
  EXPECT_EQ(metric(dropped("too_much_ahead")), 1);
}

TEST_F(Limits, LetManyRequestsAheadWaitWhileNoneOfThemIsACompletion) {
  opts.max_pipelined_bytes = 1'000;
  opts.socket_send_bytes = 4'096;
  start();
  auto client = raw_client{port()};
  auto all = std::string{};
  for (auto i = 0; i < 300; ++i)
    all += get("/healthz");
  EXPECT_TRUE(client.send(all));
  for (auto i = 0; i < 300; ++i)
    ASSERT_EQ(client.receive().status, 200) << i;
}

} // namespace
} // namespace serve
