// SPDX-License-Identifier: Apache-2.0

// Clients that go away, and what becomes of their completions.

#include "tests/serve_http/running_server.hpp"

#include <gtest/gtest.h>

#include <string>

namespace serve {
namespace {

const auto whole = post(R"({"prompt": "a"})");
const auto stream = post(R"({"prompt": "a", "stream": true})");

std::string left(const std::string& phase) {
  return "serve_disconnects_total{phase=\"" + phase + "\"}";
}

class Disconnect : public running_server {};

TEST_F(Disconnect, FIN_01_BeforeTheFirstTokenAbortsTheCompletion) {
  start();
  for (const auto& request : {whole, stream}) {
    auto client = raw_client{port()};
    client.send(request);
    const auto id = engine.wait_for_submits(request == whole ? 1 : 2);
    client.close();
    EXPECT_TRUE(engine.wait_for_abort(id));
  }
  EXPECT_EQ(metric(left("before_first_token")), 2);
  EXPECT_EQ(metric("serve_open_completions"), 0);
}

TEST_F(Disconnect, InTheMiddleOfAStreamAbortsTheCompletion) {
  start();
  auto client = raw_client{port()};
  client.send(stream);
  const auto id = engine.wait_for_submits(1);
  engine.say(id, "b");
  EXPECT_TRUE(client.await("data:"));
  client.close();
  EXPECT_TRUE(engine.wait_for_abort(id));
  EXPECT_EQ(metric(left("in_the_middle")), 1);
}

TEST_F(Disconnect, ByResetAbortsTheCompletion) {
  start();
  auto client = raw_client{port()};
  client.send(whole);
  const auto id = engine.wait_for_submits(1);
  client.reset();
  EXPECT_TRUE(engine.wait_for_abort(id));
}

TEST_F(Disconnect, OfOneDirectionAbortsTheCompletion) {
  start();
  auto client = raw_client{port()};
  client.send(whole);
  const auto id = engine.wait_for_submits(1);
  client.close_sending();
  EXPECT_TRUE(engine.wait_for_abort(id));
  EXPECT_TRUE(client.closed());
}

TEST_F(Disconnect, WithFurtherRequestsBehindAbortsOneAndServesNone) {
  start();
  auto client = raw_client{port()};
  client.send(whole + whole + whole);
  const auto id = engine.wait_for_submits(1);
  client.close();
  EXPECT_TRUE(engine.wait_for_abort(id));
  EXPECT_TRUE(await_metric("serve_connections", 1));
  EXPECT_EQ(engine.wait_for_submits(1), id) << "another one was submitted";
}

TEST_F(Disconnect, InAHalfSentRequestIsForgotten) {
  start();
  {
    auto header = raw_client{port()};
    header.send("POST /v1/comple");
    auto body = raw_client{port()};
    body.send(whole.substr(0, whole.size() - 3));
    auto nothing = raw_client{port()};
  }
  EXPECT_TRUE(await_metric(left("half_request"), 2));
  // The one that asks is left.
  EXPECT_TRUE(await_metric("serve_connections", 1));
}

TEST_F(Disconnect, WhileCountersAreAwaitedClosesTheConnection) {
  engine.has_stats = false;
  start();
  auto client = raw_client{port()};
  // The answer says that the request before it has been seen.
  client.send(get("/healthz") + get("/metrics"));
  EXPECT_EQ(client.receive().status, 200);
  client.close();
  engine.has_stats = true;
  EXPECT_TRUE(await_metric("serve_connections", 1));
}

TEST_F(Disconnect, IsNoTroubleForThoseWhoStay) {
  start();
  auto stays = raw_client{port()};
  stays.send(stream);
  const auto kept = engine.wait_for_submits(1);
  engine.say(kept, "b");
  for (auto i = std::size_t{2}; i < 20; ++i) {
    auto goes = raw_client{port()};
    goes.send(i % 2 == 0 ? whole : stream);
    const auto id = engine.wait_for_submits(i);
    if (i % 3 == 0)
      engine.say(id, "x");
    i % 5 == 0 ? goes.reset() : goes.close();
    EXPECT_TRUE(engine.wait_for_abort(id));
  }
  engine.say(kept, "c");
  engine.end(kept, completion_end::length);
  EXPECT_NE(stays.receive().body.find("[DONE]"), std::string::npos);
  EXPECT_FALSE(engine.aborted(kept));
}

TEST_F(Disconnect, LeavesWhatTheEngineSaysLaterUnheard) {
  engine.obedient = false;
  start();
  auto client = raw_client{port()};
  client.send(stream);
  const auto id = engine.wait_for_submits(1);
  client.close();
  ASSERT_TRUE(engine.wait_for_abort(id));
  EXPECT_EQ(metric("serve_open_completions"), 1);
  engine.say(id, "late");
  engine.end(id, completion_end::length);
  EXPECT_TRUE(await_metric("serve_open_completions", 0));
}

} // namespace
} // namespace serve
