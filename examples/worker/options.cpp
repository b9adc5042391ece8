// SPDX-License-Identifier: Apache-2.0

#include "examples/worker/options.hpp"

#include "examples/replay/option_groups.hpp"
#include "examples/replay/option_tools.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <sys/stat.h>

namespace kvtide::worker_program {

using namespace replay;

namespace {

constexpr std::uint32_t most_ranks = 64;

constexpr auto about
  = R"(Start it with the same options of the model as the engine, and with either
--scheduler or --listen. It waits for the scheduler and for the engine in any
order, serves steps without the cache while the scheduler is away, and waits for
the next engine when one has left. SIGTERM and SIGINT end it.

On standard output it says where it listens, and when it is ready; on standard
error what goes wrong.

Exits with 0 if it was told to end, 1 if the library failed, 2 if the arguments
cannot be used.)";

early_exit misused(std::string what) {
  std::replace(what.begin(), what.end(), '\n', ' ');
  return {2, "kvtide-worker: " + what + "; see --help"};
}

bool is_folder(const std::string& path) {
  struct stat what = {};
  return stat(path.c_str(), &what) == 0 && S_ISDIR(what.st_mode);
}

// @returns what is wrong
std::string find_fault(const program_options& opts) {
  const auto& net = opts.shared.network;
  if (opts.ranks.empty())
    return "--ranks: name ranks from 0 to 63, such as 1,2 or 1-3";
  if (opts.ranks.back() >= opts.shared.ranks)
    return "--ranks: there is no rank " + std::to_string(opts.ranks.back())
         + " among the " + std::to_string(opts.shared.ranks)
         + " of --total-ranks";
  if (opts.scheduler.empty() == net.listen.empty())
    return "give either --scheduler or --listen";
  if (opts.shared.host_bytes == 0)
    return "--host-bytes: a worker without a host pool has nothing to do";
  if (opts.ranks.size() > 1 && !is_folder(opts.engine))
    return "--engine: several ranks need a folder that exists";
  return find_contradiction(opts.shared, opts.ranks.size());
}

} // namespace

std::vector<rank_id> parse_ranks(const std::string& text) {
  auto res = std::vector<rank_id>{};
  auto in = std::istringstream{text};
  for (auto part = std::string{}; std::getline(in, part, ',');) {
    auto first = rank_id{0};
    const auto* at = part.data();
    const auto* const end = at + part.size();
    auto read = std::from_chars(at, end, first);
    auto last = first;
    if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{} || read.ptr != end || last < first
        || last >= most_ranks)
      return {};
    for (; first <= last; ++first)
      res.push_back(first);
  }
  std::sort(res.begin(), res.end());
  if (std::adjacent_find(res.begin(), res.end()) != res.end())
    return {};
  return res;
}

std::string socket_of(const program_options& opts, rank_id rank) {
  return is_folder(opts.engine) ? socket_in(opts.engine, rank) : opts.engine;
}

std::variant<program_options, early_exit>
parse_options(int argc, const char* const* argv) {
  auto opts = program_options{};
  auto& shared = opts.shared;
  auto raw = raw_sizes{};
  auto ranks = std::string{};
  auto app = CLI::App{"Hosts ranks of a kvtide scheduler that runs in another "
                      "process, with the KV memory of a model engine.",
                      "kvtide-worker"};
  app.add_option("--ranks", ranks, "Ranks that live here, such as 1,2 or 1-3")
    ->required()
    ->type_name("LIST");
  add_number(app, "--total-ranks", shared.ranks, 1u, most_ranks,
             "Tensor-parallel ranks in all, as the engine's --ranks");
  app
    .add_option("--scheduler", opts.scheduler,
                "Where the scheduler listens; dialed until it answers")
    ->type_name("HOST:PORT");
  app
    .add_option("--engine", opts.engine,
                "Where the engine tells of steps: a folder, in which each rank "
                "listens on rank-N.sock, or the socket of the only rank")
    ->required()
    ->type_name("PATH");
  add_network(app, shared);
  add_detection(app, raw.detection_ms);
  add_shape(app, shared);
  add_runtime(app, shared, raw);
  add_gpu(app, shared, raw);
  app.footer(about);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return early_exit{0, app.help()};
  } catch (const CLI::ParseError& failure) {
    return misused(failure.what());
  }
  auto fault = settle(app, raw, shared);
  opts.ranks = parse_ranks(ranks);
  if (fault.empty())
    fault = find_fault(opts);
  if (!fault.empty())
    return misused(fault);
  return opts;
}

} // namespace kvtide::worker_program
