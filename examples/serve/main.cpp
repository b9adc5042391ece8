// SPDX-License-Identifier: Apache-2.0

/// @file
/// kvtide-serve: an HTTP server, an engine, and a small model behind it.
///
/// This thread has the sockets; the engine's have the model, kvtide its own,
/// and one more waits for counters. docs/serve.md has the pages and their
/// fields.
///
/// Exit status: 0 after SIGTERM or SIGINT, whatever was lost, which is printed;
/// 1 if the engine or the loop cannot start; 2 bad usage, the address cannot be
/// used, or no client's file may be open.

#include "examples/serve/engine/serving_engine.hpp"
#include "examples/serve/http/engine_link.hpp"
#include "examples/serve/http/http_server.hpp"
#include "examples/serve/http/open_files.hpp"
#include "examples/serve/http/serve_options.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <variant>

namespace {

using namespace serve;

// For copies in flight, when nobody is left who waits for an answer.
constexpr auto last_copies = std::chrono::seconds{5};

int fail(int code, const std::string& text) {
  std::cerr << "kvtide-serve: " << text << '\n';
  return code;
}

// A signal that is held waits, for ever if need be: it ends the process neither
// while the server starts nor while it says what was lost. Threads inherit
// this, so that no other ever takes one.
void hold_signals(bool hold) {
  auto set = sigset_t{};
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
}

void print(const drain_report& drained, const stop_report& stopped) {
  const auto& cache = stopped.last.cache;
  const auto copies = stopped.jobs_in_flight;
  std::cout << "stopped: " << drained.finished << " completions finished, "
            << drained.cut_off << " cut off, "
            << drained.unended + stopped.aborted_requests
            << " lost in the engine; left over: " << cache.tracked_requests
            << " requests, "
            << (copies ? std::to_string(*copies) : "an unknown number of")
            << " copies, " << cache.pinned_slots << " pinned and "
            << cache.held_slots << " held slots" << std::endl;
}

int run(serve_options opts) {
  // First, as all that follows opens some.
  auto clients = allow_open_files(opts.http.max_connections);
  if (!clients)
    return fail(2, clients.failure().text);
  if (clients.value() < opts.http.max_connections)
    std::cerr << "kvtide-serve: This process may have too few files open for "
                 "--max-connections "
              << opts.http.max_connections << "; it takes " << clients.value()
              << ". Allow more with 'ulimit -n'.\n";
  opts.http.max_connections = clients.value();
  auto started = serving_engine::start(opts.engine);
  if (!started)
    return fail(1, started.failure().text);
  const auto engine = std::move(started).value();
  auto behind = engine_link{*engine};
  auto opened = http_server::listen(opts.http, behind);
  if (!opened)
    return fail(opened.failure().code == kvtide::ec::invalid_options ? 2 : 1,
                opened.failure().text);
  const auto server = std::move(opened).value();
  const auto v6 = opts.http.address.find(':') != std::string::npos;
  std::cout << "listening on " << (v6 ? "[" : "") << opts.http.address
            << (v6 ? "]" : "") << ":" << server->port() << std::endl;
  hold_signals(false);
  const auto drained = server->run();
  hold_signals(true);
  // Before the server goes: until then both may call back.
  behind.stop();
  const auto stopped = engine->stop(last_copies);
  print(drained, stopped);
  // The engine's destructor would wait for copies, and some never end.
  if (stopped.jobs_in_flight.value_or(1) > 0)
    std::_Exit(0);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  // Somebody who does not read what is printed is no reason to end.
  std::signal(SIGPIPE, SIG_IGN);
  const auto parsed = parse_options(argc, argv);
  if (const auto* exit = std::get_if<early_exit>(&parsed)) {
    (exit->code == 0 ? std::cout : std::cerr) << exit->text << '\n';
    return exit->code;
  }
  hold_signals(true);
  return run(std::get<serve_options>(parsed));
}
