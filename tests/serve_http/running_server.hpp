// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/http/http_server.hpp"
#include "tests/serve_http/fake_engine.hpp"
#include "tests/serve_http/raw_client.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>

namespace serve {

/// A server on a thread of its own, in front of an engine that a test plays.
class running_server : public ::testing::Test {
protected:
  running_server();
  ~running_server() override;

  /// Opens the port; `opts` counts until then.
  void start();

  [[nodiscard]] std::uint16_t port() const;

  /// Sends one request on a connection of its own.
  raw_answer ask(const std::string& request);

  /// What the page of metrics says behind this name with its labels, or -1.
  double metric(const std::string& name);

  /// Asks until `holds` returns true; false if it does not within ten seconds.
  static bool await(const std::function<bool()>& holds);

  /// The same with what the page of metrics says.
  bool await_metric(const std::string& name, double value);

  /// Blocks until `run` returned, after `stop` or a signal.
  drain_report end();

  server_options opts;
  fake_engine engine;
  std::unique_ptr<http_server> server;

private:
  std::future<drain_report> report_;
};

} // namespace serve
