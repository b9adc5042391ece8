// SPDX-License-Identifier: Apache-2.0

/// @file
/// kvtide-replay: drives the runtime with a request trace through a model of a
/// serving engine, and compares every byte that comes back.
///
/// Exit status: 0 all is well; 1 wrong bytes, something left over, or the
/// runtime failed; 2 bad input or usage, no GPU where one was asked for, or the
/// report cannot be written; 130 interrupted.

#include "examples/replay/device_choice.hpp"
#include "examples/replay/engine.hpp"
#include "examples/replay/memcpy_probe.hpp"
#include "examples/replay/open_network.hpp"
#include "examples/replay/options.hpp"
#include "examples/replay/progress_bar.hpp"
#include "examples/replay/report.hpp"
#include "examples/replay/trace_reader.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <variant>

namespace {

using namespace kvtide::replay;

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int) {
  interrupted = 1;
  // A second one ends the process at once.
  std::signal(SIGINT, SIG_DFL);
}

int fail(int code, const std::string& text) {
  std::cerr << "kvtide-replay: " << text << '\n';
  return code;
}

// What it waits for before it starts, each time that changes.
class waiting_line {
public:
  explicit waiting_line(std::shared_ptr<kvtide::network> net)
    : net_(std::move(net)) {
    // nop
  }

  bool operator()(const std::string& what) {
    if (const auto place = place_of(*net_);
        !place.empty() && place != place_)
      std::cerr << "kvtide-replay: listening on " << (place_ = place)
                << std::endl;
    if (what != what_)
      std::cerr << "kvtide-replay: " << (what_ = what) << std::endl;
    return interrupted == 0;
  }

private:
  std::shared_ptr<kvtide::network> net_;
  std::string place_;
  std::string what_;
};

int replay(const replay_options& opts) {
  auto trace = read_trace(opts.trace);
  if (!trace)
    return fail(2, trace.failure().text);
  auto rows = std::move(trace).value();
  if (opts.rows > 0 && opts.rows < rows.size())
    rows.resize(static_cast<std::size_t>(opts.rows));
  std::signal(SIGINT, on_interrupt);
  auto file = std::ofstream{};
  auto result = report{};
  try {
    auto net = std::shared_ptr<kvtide::network>{};
    auto join = join_watch{};
    if (opts.has_remote_ranks()) {
      auto made = open_network(opts.network);
      if (!made)
        return fail(2, made.failure().text);
      net = std::move(made).value();
      join = waiting_line{net};
    }
    auto bar = progress_bar{opts.progress && isatty(STDERR_FILENO) != 0};
    auto model = engine{opts, rows,
                        [&bar](const progress& at) {
                          bar.update(at);
                          return interrupted == 0;
                        },
                        net, join};
    if (net)
      std::cerr << "kvtide-replay: all ranks are here" << std::endl;
    // Opened before anything runs, so that a long run is not lost to a typo.
    if (!opts.json.empty() && opts.json != "-") {
      file.open(opts.json);
      if (!file)
        return fail(2,
                    opts.json + ": cannot be written: " + std::strerror(errno));
    }
    auto probe = memcpy_probe{opts.shape, opts.blocks_per_chunk};
    probe.run();
    result = model.run();
    probe.run();
    result.memcpy_bytes_per_second = probe.bytes_per_second();
  } catch (const given_up& failure) {
    return fail(130, failure.what());
  } catch (const bad_configuration& failure) {
    return fail(2, failure.what());
  } catch (const replay_failure& failure) {
    return fail(1, failure.what());
  }
  if (const auto lost = result.counts.ignored; lost > 0) {
    const auto text = std::to_string(lost)
                    + " requests are longer than the device pool; raise "
                      "--device-blocks to replay them";
    if (lost >= result.rows)
      return fail(2, text);
    std::cerr << "kvtide-replay: " << text << '\n';
  }
  if (opts.json == "-") {
    std::cout << to_json(result);
  } else {
    std::cout << to_text(result);
    file << to_json(result);
  }
  if (!std::cout.flush())
    return fail(2, "cannot write to standard output");
  if (file.is_open() && !file.flush())
    return fail(2, opts.json + ": cannot be written");
  return result.exit_code();
}

} // namespace

int main(int argc, char** argv) {
  const auto parsed = parse_options(argc, argv);
  if (const auto* exit = std::get_if<early_exit>(&parsed)) {
    (exit->code == 0 ? std::cout : std::cerr) << exit->text << '\n';
    if (!std::cout.flush())
      return fail(2, "cannot write to standard output");
    return exit->code;
  }
  const auto chosen = choose_device(std::get<replay_options>(parsed));
  if (const auto* exit = std::get_if<early_exit>(&chosen)) {
    std::cerr << exit->text << '\n';
    return exit->code;
  }
  const auto& [opts, notice] = std::get<chosen_device>(chosen);
  if (!notice.empty())
    std::cerr << "kvtide-replay: " << notice << '\n';
  return replay(opts);
}
