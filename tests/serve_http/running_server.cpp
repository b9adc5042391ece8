// SPDX-License-Identifier: Apache-2.0

#include "tests/serve_http/running_server.hpp"

#include <chrono>
#include <cstdlib>

namespace serve {

running_server::running_server() {
  // What a test leaves unfinished does not hold it up.
  opts.drain = std::chrono::milliseconds{0};
}

running_server::~running_server() {
  if (report_.valid()) {
    server->stop();
    report_.get();
  }
}

void running_server::start() {
  auto opened = http_server::listen(opts, engine);
  ASSERT_TRUE(opened) << opened.failure().text;
  server = std::move(opened).value();
  report_ = std::async(std::launch::async, [this] { return server->run(); });
}

std::uint16_t running_server::port() const {
  return server->port();
}

raw_answer running_server::ask(const std::string& request) {
  auto client = raw_client{port()};
  client.send(request);
  return client.receive();
}

double running_server::metric(const std::string& name) {
  auto page = std::string{"\n"};
  page += ask(get("/metrics")).body;
  const auto at = page.find(std::string{"\n"} + name + " ");
  if (at == std::string::npos)
    return -1;
  return std::atof(page.c_str() + at + 1 + name.size());
}

bool running_server::await(const std::function<bool()>& holds) {
  const auto until
    = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (!holds())
    if (std::chrono::steady_clock::now() > until)
      return false;
  return true;
}

bool running_server::await_metric(const std::string& name, double value) {
  return await([&] { return metric(name) == value; });
}

drain_report running_server::end() {
  return report_.get();
}

} // namespace serve
