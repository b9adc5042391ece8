// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/options.hpp"

#include "examples/replay/option_groups.hpp"
#include "examples/replay/option_tools.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>
#include <sys/stat.h>

namespace kvtide::replay {

namespace {

// -- options ------------------------------------------------------------------

void add_model(CLI::App& app, replay_options& opts) {
  add_shape(app, opts);
  add_number(app, "--ranks", opts.ranks, 1u, 64u, "Tensor-parallel ranks");
  add_number(app, "--token-budget", opts.token_budget, 1u, 10'000'000u,
             "Tokens that a step computes at most");
  add_number(app, "--max-running", opts.max_running, 1u, 100'000u,
             "Requests that run or load at the same time");
  add_number(app, "--step-ms", opts.step_ms, 1u, 60'000u,
             "Compute time of a step in simulated milliseconds");
  add_number(app, "--pace-us", opts.pace_us, 0u, 10'000'000u,
             "With the real clock: microseconds that a step takes at least");
  add_number(app, "--repeat-seconds", opts.repeat_seconds, 0u, 1'000'000u,
             "With the real clock: start the trace again until so many seconds "
             "have passed, with at most --max-running requests at a time; 0 "
             "means once");
  add_switch(app, "--async", "--sync", opts.async,
             "Plan a step while the one before computes (default)",
             "Plan a step when the one before is over");
}

void add_trouble(CLI::App& app, replay_options& opts) {
  add_number(app, "--abort-rate", opts.abort_rate, 0.0, 1.0,
             "Share of requests that are aborted; larger among the few that "
             "load, are deferred or are preempted");
  add_number(app, "--quick-reuse", opts.quick_reuse, 0.0, 1.0,
             "Share of requests whose blocks are reused right after they end; "
             "blocks of the others stay cached until no older ones are left");
  add_number(app, "--revisit-rate", opts.revisit_rate, 0.0, 1.0,
             "Share of those, if finished, whose text with its output is asked "
             "for again; these requests do not count in the hit rate");
}

void add_workers(CLI::App& app, replay_options& opts,
                 std::vector<std::string>& places, raw_sizes& raw) {
  app
    .add_option("--workers", places,
                "Where each rank lives, with commas in between: here, dials (a "
                "kvtide-worker that dials --listen), or the HOST:PORT where "
                "one listens (default all here)")
    ->delimiter(',')
    ->type_name("PLACE");
  app
    .add_option("--lane", opts.lanes,
                "Where this engine tells a rank elsewhere of its steps: the "
                "socket of each in order, or one folder with rank-N.sock, as "
                "kvtide-worker --engine makes it")
    ->allow_extra_args(false)
    ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
    ->type_name("SOCKET");
  add_number(app, "--join-timeout", opts.join_timeout_s, 1u, 86'400u,
             "Seconds to wait for ranks elsewhere before the replay starts");
  add_network(app, opts);
  add_detection(app, raw.detection_ms);
}

void add_all(CLI::App& app, replay_options& opts,
             std::vector<std::string>& places, raw_sizes& raw) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  app
    .add_option("--trace", opts.trace,
                "Mooncake JSON lines or Azure CSV to replay")
    ->required(opts.trace.empty())
    ->type_name("FILE");
  add_number(app, "--rows", opts.rows, std::uint64_t{0}, any,
             "First rows of the trace to replay; 0 means all");
  add_number(app, "--seed", opts.seed, std::uint64_t{0}, any,
             "Seed of everything that is random");
  add_model(app, opts);
  add_trouble(app, opts);
  add_policy(app, opts);
  add_runtime(app, opts, raw);
  add_gpu(app, opts, raw);
  add_workers(app, opts, places, raw);
  app
    .add_option("--json", opts.json,
                "Write the report as JSON to this file, or with - to standard "
                "output instead of the text")
    ->type_name("FILE");
  app
    .add_option("--plan-log", opts.plan_log,
                "Write the plan of each step to this file, a line per step")
    ->type_name("FILE");
  app.add_flag_callback(
    "--no-progress", [&opts] { opts.progress = false; },
    "No progress bar on the terminal");
}

// What the report's lines about wall time count, and how it ends.
constexpr auto about_report
  = R"(In the report, the runtime's share is the part of the wall time that the
engine's thread spent
  in calls of the runtime, each until its answer, if it has one (calls),
  in looking for notices, and asking for cache events and counters (news),
  and in waiting while the model had nothing else to do (waits): with the real
  clock for a notice, with the simulated one until time had moved and all
  copies due by then were made.
The rest is the model: it plans, and fills and compares bytes. With the
simulated clock the waits hold the copies, which a device makes beside compute;
calls and news mean the same with both clocks.
The copies' bytes per second count the wall time of copying alone, on average of
all streams: neither the time between jobs, nor latency and bandwidth as
configured, but the kernel's time for pages of the pool that nobody used before.
So they mean the same with both clocks. Beside them stands what one thread
reaches with memcpy and fragments of the same size and order, in memory that was
used before, right before and after the replay.

Exits with 0 if all is well, 1 if bytes were wrong, something was left over or
the runtime failed, 2 if the arguments or the trace cannot be used, there is no
GPU that was asked for, or the report cannot be written, 130 if it was
interrupted.)";

// -- ranks elsewhere ----------------------------------------------------------

worker_place place_of(const std::string& word) {
  if (word == "here")
    return {};
  if (word == "dials")
    return {worker_place::kind::dials_in, {}};
  return {worker_place::kind::dialed, word};
}

// @returns what is wrong
std::string take_workers(const CLI::App& app,
                         const std::vector<std::string>& places,
                         replay_options& opts) {
  for (const auto& word : places)
    opts.workers.push_back(place_of(word));
  for (const auto& word : places)
    if (word.empty()
        || (word != "here" && word != "dials"
            && word.find(':') == std::string::npos))
      return "--workers: " + word + " is none of here, dials, HOST:PORT";
  if (places.empty() && !opts.lanes.empty())
    return "--lane: no rank lives elsewhere without --workers";
  if (places.empty())
    return {};
  const auto count = static_cast<std::uint32_t>(places.size());
  if (app.count("--ranks") > 0 && opts.ranks != count)
    return "--workers names " + std::to_string(count) + " ranks, --ranks says "
         + std::to_string(opts.ranks);
  if (count > 64)
    return "--workers names " + std::to_string(count)
         + " ranks, at most 64 "
           "may be";
  opts.ranks = count;
  const auto remote = count - opts.ranks_here();
  if (remote == 0)
    return opts.lanes.empty() ? "" : "--lane: all ranks are here";
  if (opts.host_bytes == 0)
    return "--workers: with --host-bytes 0 there is nothing to share";
  if (opts.lanes.size() == remote)
    return {};
  struct stat what = {};
  const auto folder = opts.lanes.size() == 1
                   && stat(opts.lanes[0].c_str(), &what) == 0
                   && S_ISDIR(what.st_mode);
  return folder ? ""
                : "--lane: " + std::to_string(remote)
                    + " ranks live elsewhere; give the socket of each, or one "
                      "folder that exists";
}

// One line, also for words on the command line that have several.
early_exit misused(std::string what) {
  std::replace(what.begin(), what.end(), '\n', ' ');
  return {2, "kvtide-replay: " + what + "; see --help"};
}

} // namespace

std::variant<replay_options, early_exit>
parse_options(int argc, const char* const* argv) {
  auto opts = replay_options{};
#ifdef KVTIDE_REPLAY_SAMPLE
  opts.trace = KVTIDE_REPLAY_SAMPLE;
#endif
  auto places = std::vector<std::string>{};
  auto raw = raw_sizes{};
  auto app = CLI::App{"Replays a request trace against kvtide with a model of "
                      "a serving engine, and checks every byte that comes "
                      "back.",
                      "kvtide-replay"};
  add_all(app, opts, places, raw);
  app.footer(about_report);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return early_exit{0, app.help()};
  } catch (const CLI::ParseError& failure) {
    return misused(failure.what());
  }
  auto text = settle(app, raw, opts);
  if (text.empty())
    text = take_workers(app, places, opts);
  if (text.empty() && opts.kind() == device_kind::host_virtual
      && (opts.pace_us > 0 || opts.repeat_seconds > 0))
    text = "--pace-us and --repeat-seconds need --clock real";
  if (text.empty())
    text = find_contradiction(opts, opts.ranks_here());
  if (!text.empty())
    return misused(text);
  return opts;
}

// -- places -------------------------------------------------------------------

std::uint32_t replay_options::ranks_here() const {
  const auto here
    = [](const worker_place& x) { return x.where == worker_place::kind::here; };
  if (workers.empty())
    return ranks;
  return static_cast<std::uint32_t>(
    std::count_if(workers.begin(), workers.end(), here));
}

std::string replay_options::lane_of(rank_id rank) const {
  const auto remote = [this](rank_id id) {
    return id < workers.size() && workers[id].where != worker_place::kind::here;
  };
  if (!remote(rank))
    return {};
  auto index = std::size_t{0};
  auto all = std::size_t{0};
  for (auto id = rank_id{0}; id < ranks; ++id) {
    index += remote(id) && id < rank ? 1 : 0;
    all += remote(id) ? 1 : 0;
  }
  // Sockets in order, or a folder.
  struct stat what = {};
  if (lanes.size() == all
      && (all > 1 || stat(lanes[0].c_str(), &what) != 0
          || !S_ISDIR(what.st_mode)))
    return lanes[index];
  return socket_in(lanes.at(0), rank);
}

std::string socket_in(const std::string& folder, rank_id rank) {
  return folder + "/rank-" + std::to_string(rank) + ".sock";
}

} // namespace kvtide::replay
