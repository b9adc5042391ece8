// SPDX-License-Identifier: Apache-2.0

// How the server ends.

#include "tests/serve_http/running_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>

namespace serve {
namespace {

const auto whole = post(R"({"prompt": "a"})");
const auto stream = post(R"({"prompt": "a", "stream": true})");
constexpr auto long_time = std::chrono::hours{1};

class Drain : public running_server {};

TEST_F(Drain, EndsAtOnceWithoutClients) {
  opts.drain = long_time;
  start();
  server->stop();
  const auto report = end();
  EXPECT_EQ(report.finished, 0u);
  EXPECT_EQ(report.cut_off, 0u);
  EXPECT_EQ(report.unended, 0u);
}

TEST_F(Drain, OnSigtermFinishesWhatRunsAndTakesNobodyNew) {
  opts.drain = long_time;
  start();
  auto client = raw_client{port()};
  client.send(whole + whole);
  auto idle = raw_client{port()};
  idle.send(get("/healthz"));
  EXPECT_EQ(idle.receive().status, 200);
  const auto id = engine.wait_for_submits(1);
  std::raise(SIGTERM);
  EXPECT_TRUE(idle.closed());
  auto late = raw_client{port()};
  EXPECT_FALSE(late.send(whole) && late.receive().status != 0);
  engine.say(id, "b");
  engine.end(id, completion_end::length);
  const auto answer = client.receive();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.fields.at("connection"), "close");
  EXPECT_TRUE(client.closed()) << "the second request is not served";
  client.close();
  idle.close();
  const auto report = end();
  EXPECT_EQ(report.finished, 1u);
  EXPECT_EQ(report.cut_off, 0u);
}

TEST_F(Drain, TakesASignalThatCameBeforeItRan) {
  auto opened = http_server::listen(opts, engine);
  ASSERT_TRUE(opened);
  std::raise(SIGTERM);
  EXPECT_EQ(opened.value()->run().unended, 0u);
}

TEST_F(Drain, CutsOffWhatTakesTooLongAndSaysSo) {
  opts.drain = std::chrono::milliseconds{20};
  start();
  auto silent = raw_client{port()};
  silent.send(whole);
  ASSERT_NE(engine.wait_for_submits(1), 0u);
  auto talking = raw_client{port()};
  talking.send(stream);
  const auto id = engine.wait_for_submits(2);
  engine.say(id, "b");
  ASSERT_TRUE(talking.await("data:"));
  server->stop();
  const auto refused = silent.receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("shutting_down"), std::string::npos);
  const auto answer = talking.receive();
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find("shutting_down"), std::string::npos);
  EXPECT_EQ(answer.body.find("[DONE]"), std::string::npos);
  silent.close();
  talking.close();
  const auto report = end();
  EXPECT_EQ(report.finished, 0u);
  EXPECT_EQ(report.cut_off, 2u);
  EXPECT_EQ(report.unended, 0u);
}

TEST_F(Drain, CutsOffAtOnceOnASecondSignal) {
  opts.drain = long_time;
  start();
  auto client = raw_client{port()};
  client.send(whole);
  const auto id = engine.wait_for_submits(1);
  std::raise(SIGINT);
  std::raise(SIGINT);
  EXPECT_TRUE(engine.wait_for_abort(id));
  EXPECT_EQ(client.receive().status, 503);
  client.close();
  EXPECT_EQ(end().cut_off, 1u);
}

TEST_F(Drain, IsNotChangedByFurtherSignals) {
  opts.drain = long_time;
  start();
  auto client = raw_client{port()};
  client.send(whole);
  const auto id = engine.wait_for_submits(1);
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  EXPECT_TRUE(engine.wait_for_abort(id));
  EXPECT_EQ(client.receive().status, 503);
  // Each would end this process, had nobody caught it.
  std::raise(SIGTERM);
  std::raise(SIGINT);
  client.close();
  EXPECT_EQ(end().cut_off, 1u);
  std::raise(SIGTERM);
}

TEST_F(Drain, WaitsForCompletionsWhoseClientsAreGone) {
  opts.drain = long_time;
  engine.obedient = false;
  start();
  auto client = raw_client{port()};
  client.send(whole);
  const auto id = engine.wait_for_submits(1);
  client.close();
  ASSERT_TRUE(engine.wait_for_abort(id));
  server->stop();
  engine.end(id, completion_end::aborted);
  EXPECT_EQ(end().unended, 0u);
}

TEST_F(Drain, EndsWithoutCountersThatNeverCome) {
  opts.last_answers = std::chrono::milliseconds{20};
  engine.has_stats = false;
  start();
  auto client = raw_client{port()};
  client.send(get("/healthz") + get("/metrics"));
  EXPECT_EQ(client.receive().status, 200);
  server->stop();
  EXPECT_EQ(end().unended, 0u);
  EXPECT_TRUE(client.closed());
}

TEST_F(Drain, EndsWithoutAnEngineThatSaysNothing) {
  opts.last_answers = std::chrono::milliseconds{20};
  engine.obedient = false;
  start();
  auto client = raw_client{port()};
  client.send(whole);
  const auto id = engine.wait_for_submits(1);
  server->stop();
  EXPECT_EQ(end().unended, 1u);
  EXPECT_TRUE(engine.aborted(id));
  EXPECT_TRUE(client.closed());
}

} // namespace
} // namespace serve
