// SPDX-License-Identifier: Apache-2.0

// What does it cost a step that its ranks live in other processes?
//
//   bench-distance --steps 5000 --certificates FOLDER --json distance.json
//
// The same engine with ranks in this process, in processes of their own on
// loopback, and the same with TLS. Every rank has a thread that begins and ends
// each step at once, so that what remains is the runtime and the way to it. A
// block is never used twice: no step has a flush. Times are of one clock, which
// the processes share.

#include "kvtide/network.hpp"
#include "kvtide/worker.hpp"

#include "bench/load.hpp"
#include "bench/rank_board.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

namespace kvtide::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;
constexpr std::uint64_t block_bytes = 64;

struct parameters {
  load_config load{256, 1'024, 1, false, 0, 1, rule_set::safe, 0};
  std::uint64_t warm_up = 500;
  std::uint64_t steps = 5'000;
  std::uint32_t ranks = 4;
  int rounds = 3;
  std::string certificates;
  std::string json;
};

/// Where the ranks are, and how they are reached.
struct way {
  const char* name;
  std::uint32_t local = 0;
  std::uint32_t remote = 0;
  bool tls = false;
};

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "bench-distance: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
T get(result<T> made) {
  if (!made)
    die(made.failure().text);
  return std::move(made).value();
}

// -- both sides ---------------------------------------------------------------

std::uint32_t blocks_of(const parameters& params) {
  const auto steps = params.warm_up + params.steps;
  const auto tokens
    = static_cast<std::uint64_t>(params.load.context) + steps + block_tokens;
  return static_cast<std::uint32_t>(
    (tokens / block_tokens + 2) * params.load.requests + 1);
}

options options_of(const parameters& params, const way& which) {
  auto out = options_of(params.load);
  out.ranks = which.local + which.remote;
  out.host_bytes = pool_slots * block_bytes;
  for (rank_id r = 0; which.remote > 0 && r < out.ranks; ++r)
    out.workers.push_back({r < which.local ? worker_place::kind::here
                                           : worker_place::kind::dials_in,
                           {}});
  return out;
}

std::shared_ptr<network> network_of(const parameters& params, const way& which,
                                    bool listens) {
  auto out = network_options{};
  if (listens)
    out.listen = "127.0.0.1:0";
  if (which.tls) {
    const auto name = std::string{listens ? "engine" : "worker"};
    out.certificate = params.certificates + "/" + name + ".crt";
    out.private_key = params.certificates + "/" + name + ".key";
    out.trusted = params.certificates + "/ca.crt";
  }
  return get(make_network(out));
}

/// Begins and ends steps `1` to `last` as soon as it may.
void serve(rank& side, rank_id id, const parameters& params, rank_board& board,
           step_id last) {
  auto memory
    = std::vector<std::byte>(std::size_t{blocks_of(params)} * block_bytes);
  auto kv = kv_memory{};
  kv.rank = id;
  kv.tensors = {{memory.data(), memory.size(), memory_kind::host,
                 blocks_of(params), block_bytes, block_bytes}};
  kv.references = {{0, 0, 0, 0, block_bytes}};
  side.register_kv(std::move(kv));
  auto over = false;
  while (!over && side.wait(patience))
    for (const auto& event : side.poll())
      if (const auto* failed = std::get_if<rank_failed>(&event))
        die("rank " + std::to_string(id) + ": " + failed->reason.text);
      else if (const auto* there = std::get_if<kv_registered>(&event)) {
        if (there->reason.code != ec::none)
          die(there->reason.text);
        board.open(id);
        board.await_start(); // A rank that has not joined goes on alone.
        side.begin_step(1);
      } else if (const auto* ready = std::get_if<step_ready>(&event)) {
        board.note(id, ready->step);
        side.end_step(ready->step, {});
        if (ready->step == last)
          side.unregister_kv();
        else
          side.begin_step(ready->step + 1);
      } else if (std::holds_alternative<kv_unregistered>(event)) {
        over = true;
      }
  if (!over)
    die("rank " + std::to_string(id) + " heard nothing for a minute");
}

/// The other process, until the last step.
[[noreturn]] void be_worker(const parameters& params, const way& which,
                            rank_id id, rank_board& board, step_id last) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto opts = worker_options{};
  opts.shared = options_of(params, which);
  opts.shared.network = network_of(params, which, false);
  opts.ranks = {id};
  opts.scheduler = board.await_address();
  {
    auto here = get(worker::start(opts));
    serve(here.local_rank(id), id, params, board, last);
    board.await_end(); // The scheduler is to hear of the last copies.
  }
  std::_Exit(0);
}

// -- the engine ---------------------------------------------------------------

/// Microseconds, one per step.
struct times {
  std::vector<double> call;
  std::vector<double> plan;
  std::vector<double> ready;
  std::vector<double> step;
};

class engine {
public:
  engine(runtime& rt, rank_board& board, std::uint32_t ranks)
    : runtime_(rt), board_(board), ranks_(ranks) {
    // nop
  }

  /// @param out null: nobody asks
  void step(step_call call, times* out) {
    using std::chrono::duration;
    const auto id = call.step;
    const auto begin = rank_board::now();
    runtime_.step(std::move(call));
    const auto called = rank_board::now();
    auto planned = std::int64_t{0};
    auto slowest = std::int64_t{0};
    while (planned == 0 || slowest == 0) {
      if (planned == 0)
        planned = hear_plan(id);
      if (slowest == 0)
        slowest = board_.slowest(ranks_, id);
      if (planned == 0 || slowest == 0)
        board_.wait(runtime_.event_fd(), planned == 0);
    }
    if (out == nullptr)
      return;
    const auto micros = [begin](std::int64_t moment) {
      return static_cast<double>(moment - begin) / 1'000;
    };
    out->call.push_back(micros(called));
    out->plan.push_back(micros(planned));
    out->ready.push_back(micros(slowest));
    out->step.push_back(micros(rank_board::now()));
  }

private:
  std::int64_t hear_plan(step_id id) {
    auto heard = std::int64_t{0};
    for (const auto& event : runtime_.poll()) {
      if (const auto* plan = std::get_if<step_plan>(&event);
          plan != nullptr && plan->step == id) {
        heard = rank_board::now();
        if (!plan->flush.empty())
          die("a step has a flush");
      } else if (const auto* failed = std::get_if<call_failed>(&event)) {
        die(failed->reason.text);
      } else if (std::holds_alternative<rank_lost>(event)) {
        die("a rank was lost");
      }
    }
    return heard;
  }

  runtime& runtime_;
  rank_board& board_;
  std::uint32_t ranks_;
};

/// Until the pool is open: every rank has joined.
void await_ranks(runtime& rt) {
  auto slots = std::uint64_t{0};
  while (slots == 0) {
    std::this_thread::sleep_for(1ms);
    rt.get_stats();
    if (!rt.wait(patience))
      die("the runtime does not answer");
    for (const auto& event : rt.poll())
      if (const auto* answer = std::get_if<stats_answer>(&event))
        slots = answer->values.host_slots;
  }
}

times run(const parameters& params, const way& which) {
  auto board = rank_board{};
  const auto last = params.load.requests + params.warm_up + params.steps;
  const auto ranks = which.local + which.remote;
  auto children = std::vector<pid_t>{};
  for (rank_id r = which.local; r < ranks; ++r) {
    const auto child = ::fork(); // No thread runs yet.
    if (child < 0)
      die("a process cannot be started");
    if (child == 0)
      be_worker(params, which, r, board, last);
    children.push_back(child);
  }
  auto out = times{};
  {
    auto opts = options_of(params, which);
    if (which.remote > 0)
      opts.network = network_of(params, which, true);
    auto rt = get(runtime::start(opts));
    if (opts.network)
      board.publish(address_of(*opts.network));
    auto threads = std::vector<std::thread>{};
    for (rank_id r = 0; r < which.local; ++r)
      threads.emplace_back(
        [&, r] { serve(rt.local_rank(r), r, params, board, last); });
    board.await_open(ranks);
    await_ranks(rt);
    board.start();
    auto load = engine_load{params.load};
    auto driver = engine{rt, board, ranks};
    for (std::size_t i = 0; i < params.load.requests; ++i) {
      auto next = load.arrive();
      rt.add(next.add);
      rt.extend(std::move(next.keys));
      driver.step(std::move(next.prefill), nullptr);
    }
    for (std::uint64_t i = 0; i < params.warm_up + params.steps; ++i) {
      auto next = load.decode();
      for (auto& keys : next.keys)
        rt.extend(std::move(keys));
      driver.step(std::move(next.step), i < params.warm_up ? nullptr : &out);
    }
    for (auto& thread : threads)
      thread.join();
    board.end();
  }
  for (auto child : children) {
    auto status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0)
      die("a worker failed");
  }
  return out;
}

// -- the table ----------------------------------------------------------------

double part_of(std::vector<double> values, double part) {
  const auto place = static_cast<std::ptrdiff_t>(
    part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

/// Over the rounds: the median, and the lowest and the highest.
struct spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

spread spread_of(const std::vector<double>& rounds) {
  return {part_of(rounds, 0.5), part_of(rounds, 0), part_of(rounds, 1)};
}

void print(const std::vector<way>& ways,
           const std::vector<std::vector<times>>& all,
           const parameters& params) {
  auto rows = nlohmann::ordered_json::array();
  std::printf("| ranks | what, us | p50 | p99 | p50, times local |\n"
              "| --- | --- | ---: | ---: | ---: |\n");
  const auto row = [&](const way& which, std::size_t i, const char* what,
                       std::vector<double> times::*field) {
    auto p50 = std::vector<double>{};
    auto p99 = std::vector<double>{};
    auto ratio = std::vector<double>{};
    for (std::size_t r = 0; r < all[i].size(); ++r) {
      p50.push_back(part_of(all[i][r].*field, 0.5));
      p99.push_back(part_of(all[i][r].*field, 0.99));
      ratio.push_back(p50.back() / part_of(all[0][r].*field, 0.5));
    }
    const auto middle = spread_of(p50);
    const auto high = spread_of(p99);
    const auto times_local = spread_of(ratio);
    std::printf("| %s | %s | %.0f (%.0f to %.0f) | %.0f (%.0f to %.0f) | %.2f "
                "(%.2f to %.2f) |\n",
                which.name, what, middle.median, middle.least, middle.most,
                high.median, high.least, high.most, times_local.median,
                times_local.least, times_local.most);
    rows.push_back({{"ranks", which.name},
                    {"what", what},
                    {"p50", p50},
                    {"p99", p99},
                    {"ratio", ratio}});
  };
  for (std::size_t i = 0; i < ways.size(); ++i) {
    row(ways[i], i, "call of step()", &times::call);
    row(ways[i], i, "step() to plan", &times::plan);
    row(ways[i], i, "step() to fence known, slowest rank", &times::ready);
    row(ways[i], i, "whole step", &times::step);
  }
  if (!params.json.empty())
    std::ofstream{params.json}
      << nlohmann::ordered_json{{"cores", std::thread::hardware_concurrency()},
                                {"requests", params.load.requests},
                                {"steps", params.steps},
                                {"rounds", params.rounds},
                                {"rows", std::move(rows)}}
           .dump(2)
      << '\n';
}

int run(const parameters& params) {
  auto ways
    = std::vector<way>{{"1 here", 1, 0, false}, {"1 remote", 0, 1, false}};
  if (!params.certificates.empty())
    ways.push_back({"1 remote, TLS", 0, 1, true});
  if (params.ranks > 1) {
    ways.push_back({"all here", params.ranks, 0, false});
    ways.push_back({"1 here, others remote", 1, params.ranks - 1, false});
  }
  if (params.ranks > 1 && !params.certificates.empty())
    ways.push_back({"1 here, others remote, TLS", 1, params.ranks - 1, true});
  auto all = std::vector<std::vector<times>>(ways.size());
  for (auto round = 0; round < params.rounds; ++round)
    for (std::size_t i = 0; i < ways.size(); ++i) {
      std::fprintf(stderr, "round %d of %d: %s\n", round + 1, params.rounds,
                   ways[i].name);
      all[i].push_back(run(params, ways[i]));
    }
  std::printf("%u ranks, %zu requests, %llu steps, %d rounds, %u cores\n\n",
              params.ranks, params.load.requests,
              static_cast<unsigned long long>(params.steps), params.rounds,
              std::thread::hardware_concurrency());
  print(ways, all, params);
  return 0;
}

} // namespace
} // namespace kvtide::bench

int main(int argc, char** argv) {
  auto params = kvtide::bench::parameters{};
  auto app = CLI::App{"Measures steps whose ranks live in other processes "
                      "beside steps whose ranks live here."};
  app.add_option("--steps", params.steps, "steps that count")
    ->check(CLI::Range(1, 1'000'000));
  app.add_option("--warm-up", params.warm_up, "steps before them")
    ->check(CLI::Range(0, 1'000'000));
  app.add_option("--requests", params.load.requests, "running requests")
    ->check(CLI::Range(1, 10'000));
  app.add_option("--ranks", params.ranks, "ranks of the larger groups")
    ->check(CLI::Range(1, 16));
  app.add_option("--rounds", params.rounds, "times that each way is measured")
    ->check(CLI::Range(1, 100));
  app
    .add_option("--certificates", params.certificates,
                "measure TLS too: a folder of tools/make-certificates")
    ->check(CLI::ExistingDirectory);
  app.add_option("--json", params.json, "write all figures to this file");
  CLI11_PARSE(app, argc, argv);
  return kvtide::bench::run(params);
}
