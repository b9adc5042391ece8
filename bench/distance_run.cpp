// SPDX-License-Identifier: Apache-2.0

#include "bench/distance_run.hpp"

#include "kvtide/network.hpp"
#include "kvtide/worker.hpp"

#include "bench/rank_board.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <variant>

namespace kvtide::bench {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;
constexpr std::uint64_t block_bytes = 64;

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "bench-distance: %s\n", why.c_str());
  std::_Exit(1);
}

template <class T>
T get(result<T> made) {
  if (!made)
    die(made.failure().text);
  return std::move(made).value();
}

// -- both sides ---------------------------------------------------------------

step_id last_step(const distance_config& config) {
  return config.load.requests + config.warm_up + config.steps;
}

/// A block is never used twice: no step has a flush.
std::uint32_t blocks_of(const distance_config& config) {
  const auto tokens = static_cast<std::uint64_t>(config.load.context)
                    + config.warm_up + config.steps + block_tokens;
  return static_cast<std::uint32_t>(
    (tokens / block_tokens + 2) * config.load.requests + 1);
}

options options_of(const distance_config& config, const rank_places& where) {
  auto out = options_of(config.load);
  out.ranks = where.local + where.remote;
  out.host_bytes = pool_slots * block_bytes;
  for (rank_id r = 0; where.remote > 0 && r < out.ranks; ++r)
    out.workers.push_back({r < where.local ? worker_place::kind::here
                                           : worker_place::kind::dials_in,
                           {}});
  return out;
}

std::shared_ptr<network> network_of(const distance_config& config,
                                    const rank_places& where, bool engine) {
  auto out = network_options{};
  if (engine)
    out.listen = "127.0.0.1:0";
  if (where.tls) {
    const auto folder = config.certificates + "/";
    const auto name = folder + (engine ? "engine" : "worker");
    out.certificate = name + ".pem";
    out.private_key = name + ".key";
    out.trusted = folder + "trusted.pem";
  }
  return get(make_network(out));
}

/// A rank that computes nothing: begins and ends each step as soon as it may.
void serve(rank& side, rank_id id, const distance_config& config,
           rank_board& board) {
  auto memory
    = std::vector<std::byte>(std::size_t{blocks_of(config)} * block_bytes);
  auto kv = kv_memory{};
  kv.rank = id;
  kv.tensors = {{memory.data(), memory.size(), memory_kind::host,
                 blocks_of(config), block_bytes, block_bytes}};
  kv.references = {{0, 0, 0, 0, block_bytes}};
  side.register_kv(std::move(kv));
  auto over = false;
  while (!over && side.wait(patience))
    for (const auto& event : side.poll())
      if (const auto* failed = std::get_if<rank_failed>(&event)) {
        die("rank " + std::to_string(id) + ": " + failed->reason.text);
      } else if (const auto* there = std::get_if<kv_registered>(&event)) {
        if (there->reason.code != ec::none)
          die(there->reason.text);
        board.open(id);
        board.await_start(); // A rank that has not joined goes on alone.
        side.begin_step(1);
      } else if (const auto* ready = std::get_if<step_ready>(&event)) {
        board.note(id, ready->step);
        side.end_step(ready->step, {});
        if (ready->step == last_step(config))
          side.unregister_kv();
        else
          side.begin_step(ready->step + 1);
      } else if (std::holds_alternative<kv_unregistered>(event)) {
        over = true;
      }
  if (!over)
    die("rank " + std::to_string(id) + " heard nothing for a minute");
  board.close(id);
}

void be_worker(const distance_config& config, const rank_places& where,
               rank_id id, rank_board& board) {
  auto opts = worker_options{};
  opts.shared = options_of(config, where);
  opts.shared.network = network_of(config, where, false);
  opts.ranks = {id};
  opts.scheduler = board.await_address();
  auto here = get(worker::start(opts));
  serve(here.local_rank(id), id, config, board);
}

// -- the engine ---------------------------------------------------------------

class engine {
public:
  engine(runtime& rt, rank_board& board, const rank_places& where)
    : runtime_(rt), board_(board), local_(where.local),
      ranks_(where.local + where.remote) {
    // nop
  }

  step_times step(step_call call) {
    const auto id = call.step;
    const auto begin = rank_board::now();
    runtime_.step(std::move(call));
    const auto called = rank_board::now();
    auto planned = std::int64_t{0};
    auto ready = std::int64_t{0};
    while (planned == 0 || ready == 0) {
      if (const auto heard = hear_plan(id); planned == 0)
        planned = heard; // A rank that is lost is heard of all the time.
      if (ready == 0)
        ready = board_.slowest(0, ranks_, id);
      if (planned == 0 || ready == 0)
        board_.wait(runtime_.event_fd(), planned == 0);
    }
    const auto micros = [begin](std::int64_t moment) {
      return static_cast<double>(moment - begin) / 1'000;
    };
    const auto here = board_.slowest(0, local_, id);
    return {micros(called), micros(planned), local_ == 0 ? 0 : micros(here),
            micros(ready), micros(rank_board::now())};
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
  std::uint32_t local_;
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

std::vector<step_times> drive(runtime& rt, rank_board& board,
                              const distance_config& config,
                              const rank_places& where) {
  auto out = std::vector<step_times>{};
  auto load = engine_load{config.load};
  auto driver = engine{rt, board, where};
  for (std::size_t i = 0; i < config.load.requests; ++i) {
    auto next = load.arrive();
    rt.add(next.add);
    rt.extend(std::move(next.keys));
    driver.step(std::move(next.prefill));
  }
  for (std::uint64_t i = 0; i < config.warm_up + config.steps; ++i) {
    auto next = load.decode();
    for (auto& keys : next.keys)
      rt.extend(std::move(keys));
    const auto times = driver.step(std::move(next.step));
    if (i >= config.warm_up)
      out.push_back(times);
  }
  return out;
}

std::vector<step_times> be_engine(const distance_config& config,
                                  const rank_places& where, rank_board& board) {
  const auto ranks = where.local + where.remote;
  auto opts = options_of(config, where);
  if (where.remote > 0)
    opts.network = network_of(config, where, true);
  auto rt = get(runtime::start(opts));
  if (opts.network)
    board.publish(address_of(*opts.network));
  auto threads = std::vector<std::thread>{};
  for (rank_id r = 0; r < where.local; ++r)
    threads.emplace_back([&, r] { serve(rt.local_rank(r), r, config, board); });
  board.await_open(ranks);
  await_ranks(rt);
  board.start();
  auto out = drive(rt, board, config, where);
  for (auto& thread : threads)
    thread.join();
  // A rank ends its last copies before the one who asked for them goes.
  board.await_closed(ranks);
  return out;
}

// -- processes ----------------------------------------------------------------

/// Runs `body` in a process of its own, which ends with this one.
template <class Body>
pid_t in_a_process(Body body) {
  const auto parent = ::getpid();
  const auto child = ::fork();
  if (child < 0)
    die("a process cannot be started");
  if (child != 0)
    return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent)
    body();
  std::_Exit(0);
}

void write_all(int fd, const std::vector<step_times>& times) {
  const auto* at = reinterpret_cast<const char*>(times.data());
  auto left = times.size() * sizeof(step_times);
  while (left > 0) {
    const auto count = ::write(fd, at, left);
    if (count <= 0)
      die("the times cannot be handed over");
    at += count;
    left -= static_cast<std::size_t>(count);
  }
}

std::vector<step_times> read_all(int fd, std::size_t steps) {
  auto out = std::vector<step_times>(steps);
  auto* at = reinterpret_cast<char*>(out.data());
  auto left = steps * sizeof(step_times);
  while (left > 0) {
    const auto count = ::read(fd, at, left);
    if (count <= 0)
      die("an engine ended early");
    at += count;
    left -= static_cast<std::size_t>(count);
  }
  return out;
}

} // namespace

std::vector<step_times> measure_distance(const distance_config& config,
                                         const rank_places& where) {
  auto board = rank_board{};
  int ends[2];
  if (::pipe(ends) != 0)
    die("no pipe can be had");
  auto children = std::vector<pid_t>{};
  for (auto r = where.local; r < where.local + where.remote; ++r)
    children.push_back(in_a_process([&] {
      ::close(ends[0]);
      ::close(ends[1]);
      be_worker(config, where, r, board);
    }));
  children.push_back(in_a_process([&] {
    ::close(ends[0]);
    write_all(ends[1], be_engine(config, where, board));
  }));
  ::close(ends[1]);
  auto out = read_all(ends[0], config.steps);
  ::close(ends[0]);
  for (auto child : children) {
    auto status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0)
      die("a process of " + where.name + " failed");
  }
  return out;
}

} // namespace kvtide::bench
