// SPDX-License-Identifier: Apache-2.0

/// @file
/// kvtide-worker: hosts ranks for a scheduler that runs in another process.
///
/// Exit status: 0 it was told to end; 1 the library failed; 2 the arguments
/// cannot be used, or an address, a file or a GPU is not to be had.

#include "kvtide/worker.hpp"

#include "examples/replay/device_choice.hpp"
#include "examples/replay/runtime_options.hpp"
#include "examples/worker/lane_host.hpp"
#include "examples/worker/options.hpp"

#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace kvtide;
using namespace kvtide::worker_program;

std::atomic<bool> told_to_end{false};
static_assert(std::atomic<bool>::is_always_lock_free); // In a signal handler.

extern "C" void on_signal(int) {
  told_to_end = true;
}

std::mutex lines_guard;

void say(std::ostream& out, const std::string& text) {
  const auto lock = std::lock_guard{lines_guard};
  out << text + "\n" << std::flush; // One piece: others log as well.
}

void complain(const std::string& text) {
  say(std::cerr, "kvtide-worker: " + text);
}

int fail(int code, const std::string& text) {
  complain(text);
  return code;
}

std::uint64_t make_life() {
  auto source = std::random_device{};
  return std::uint64_t{source()} << 32 | source();
}

std::string names_of(const std::vector<rank_id>& ranks) {
  auto res = std::string{ranks.size() > 1 ? "ranks" : "rank"};
  for (const auto id : ranks)
    res += (id == ranks.front() ? " " : ", ") + std::to_string(id);
  return res;
}

int serve(const program_options& opts) {
  auto net = make_network(opts.shared.network);
  if (!net)
    return fail(2, net.failure().text);
  auto what = worker_options{};
  what.shared = replay::make_runtime_options(opts.shared);
  what.shared.network = net.value();
  what.ranks = opts.ranks;
  what.scheduler = opts.scheduler;
  auto hosts = std::vector<std::unique_ptr<lane_host>>{};
  auto started = worker::start(what); // Goes before the memory.
  if (!started)
    return fail(2, started.failure().text);
  auto here = std::make_unique<worker>(std::move(started).value());
  const auto life = make_life();
  try {
    for (const auto id : opts.ranks)
      hosts.push_back(std::make_unique<lane_host>(
        opts.shared, id, here->local_rank(id), socket_of(opts, id), life,
        told_to_end, [id](const std::string& text) {
          complain("rank " + std::to_string(id) + ": " + text);
        }));
  } catch (const std::runtime_error& failure) {
    return fail(2, failure.what());
  }
  if (const auto place = address_of(*net.value()); !place.empty())
    say(std::cout, "listening on " + place);
  say(std::cout,
      names_of(opts.ranks) + " ready for an engine at " + opts.engine);
  auto status = std::atomic<int>{0};
  auto threads = std::vector<std::thread>{};
  for (auto& host : hosts)
    threads.emplace_back([&host, &status] {
      try {
        host->run();
      } catch (const std::exception& failure) {
        complain(failure.what());
        status = 1;
        told_to_end = true;
      }
    });
  for (auto& one : threads)
    one.join();
  here.reset(); // No copy can touch the memory any more.
  say(std::cout, "ended");
  return status;
}

} // namespace

int main(int argc, char** argv) {
  const auto parsed = worker_program::parse_options(argc, argv);
  if (const auto* exit = std::get_if<replay::early_exit>(&parsed)) {
    (exit->code == 0 ? std::cout : std::cerr) << exit->text << '\n';
    return std::cout.flush() ? exit->code
                             : fail(2, "cannot write to standard output");
  }
  auto opts = std::get<program_options>(parsed);
  auto chosen = replay::choose_device(opts.shared);
  if (const auto* exit = std::get_if<replay::early_exit>(&chosen))
    return fail(exit->code, exit->text);
  auto& device = std::get<replay::chosen_device>(chosen);
  opts.shared = std::move(device.opts);
  if (!device.notice.empty())
    complain(device.notice);
  struct sigaction act = {};
  act.sa_handler = on_signal;
  sigaction(SIGTERM, &act, nullptr);
  sigaction(SIGINT, &act, nullptr);
  return serve(opts);
}
