// SPDX-License-Identifier: Apache-2.0

/// @file
/// A real scheduler, cache manager and requests; the test plays the engine and
/// the workers, of which all but rank 0 live in other processes. Every message
/// of a worker is sent by hand, so every order can be had.

#pragma once

#include "actors/cache_manager.hpp"
#include "actors/scheduler.hpp"
#include "tests/actors/short_forms.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/listen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvtide::test {

using lines = std::vector<std::string>;

struct remote_part {
  static inline const char* name = "remote-part";
};

inline std::string text_of(const std::vector<job_id>& ids) {
  auto out = std::string{};
  for (auto id : ids) {
    if (!out.empty())
      out += ' ';
    out += std::to_string(id);
  }
  return out;
}

inline std::string text_of(const std::vector<job>& jobs) {
  auto ids = std::vector<job_id>{};
  for (const auto& work : jobs)
    ids.push_back(work.id);
  return text_of(ids);
}

inline std::string blocks_of(std::vector<block_id> blocks) {
  return text_of(std::vector<job_id>{blocks.begin(), blocks.end()});
}

/// What the engine heard: notices as they came, the last answers.
struct engine_ear {
  lines notices;
  lines answers;
  step_plan plan;
  std::vector<lookup_hit> hits;
  stats counters;
  std::vector<cache_event> events;
  msg::snapshot_answer snapshot;
};

inline engine_actor::behavior_type
listening_engine(engine_actor::stateful_pointer<remote_part>, engine_ear* ear) {
  const auto notice
    = [ear](std::string text) { ear->notices.push_back(std::move(text)); };
  return listen<engine_actor>(
    [=](const step_plan& x) {
      ear->plan = x;
      ear->answers.push_back("step " + std::to_string(x.step));
    },
    [=](const lookup_answer& x) { ear->hits = x.hits; },
    [=](const stats_answer& x) { ear->counters = x.values; },
    [=](const events_answer& x) { ear->events = x.events; },
    [=](const msg::snapshot_answer& x) { ear->snapshot = x; },
    [=](const call_done& x) {
      ear->answers.push_back("done"
                             + std::string{x.in_flight.empty() ? "" : " "}
                             + text_of(x.in_flight));
    },
    [=](const call_failed& x) { ear->answers.push_back(x.reason.text); },
    [=](const load_done& x) { notice("load_done " + std::to_string(x.job)); },
    [=](const load_failed& x) {
      notice("load_failed " + std::to_string(x.job) + " from "
             + std::to_string(x.first_bad_token)
             + (x.use_new_blocks ? ", new blocks" : ""));
    },
    [=](const blocks_released& x) {
      notice("released " + blocks_of(x.blocks));
    },
    [=](const rank_lost& x) {
      notice("lost " + std::to_string(x.rank) + "/"
             + std::to_string(x.incarnation));
    },
    [=](const rank_back& x) {
      notice("back " + std::to_string(x.rank) + "/"
             + std::to_string(x.incarnation) + (x.same_life ? " same" : ""));
    },
    [=](const overload&) { notice("overload"); },
    [=](const cache_lost&) { notice("cache_lost"); });
}

/// Says nothing by itself. Writes down what it hears.
inline gpu_worker_actor::behavior_type
listening_worker(gpu_worker_actor::stateful_pointer<remote_part>, lines* log) {
  return listen<gpu_worker_actor>(
    [=](const msg::begin_step& x) {
      log->push_back("step " + std::to_string(x.step) + " L" + text_of(x.loads)
                     + " F" + text_of(x.flush));
    },
    [=](const msg::stores& x) { log->push_back("stores " + text_of(x.jobs)); },
    [=](const msg::report_again& x) {
      log->push_back("again silent " + text_of(x.silent) + " late "
                     + text_of(x.late));
    },
    [=](const msg::tick&) { log->push_back("tick"); },
    [=](const msg::pause&) { log->push_back("pause"); });
}

class remote_fixture : public actor_fixture {
protected:
  /// Requests; those with equal letters have equal prefixes.
  static constexpr request_id A = 'A';
  static constexpr request_id B = 'B';
  static constexpr request_id C = 'C';
  static constexpr std::uint64_t slots = 8;

  ~remote_fixture() override {
    world.kill(uut); // Says no more to those that write down what they hear.
  }

  void start(std::uint32_t ranks, options with = plain_options()) {
    opts = std::move(with);
    opts.ranks = ranks;
    shape
      = std::make_shared<const core::layout>(core::make_layout(opts).value());
    cache = world.spawn(cache_manager, cache_manager_config{shape, opts});
    engine = world.spawn(listening_engine, &ear);
    uut = world.spawn(scheduler, scheduler_config{shape, opts, {}}, cache,
                      engine);
    for (rank_id r = 0; r < ranks; ++r)
      connect(r);
  }

  void start_joined(std::uint32_t ranks, options with = plain_options()) {
    start(ranks, std::move(with));
    for (rank_id r = 0; r < ranks; ++r)
      ready(r);
  }

  // -- workers ----------------------------------------------------------------

  /// The rank has a new handle, as after a new connection.
  void connect(rank_id rank) {
    if (rank >= workers.size())
      workers.resize(rank + 1);
    logs.emplace_back();
    workers[rank].handle = world.spawn(listening_worker, &logs.back());
    workers[rank].log = &logs.back();
  }

  template <class Message>
  void say(const gpu_worker_actor& from, Message message) {
    world.send_as(from, uut, std::move(message));
    world.run();
  }

  template <class Message>
  void say(rank_id rank, Message message) {
    say(workers[rank].handle, std::move(message));
  }

  void ready(rank_id rank, incarnation_id life = 1) {
    say(rank, msg::worker_ready{rank, life, slots, {}, rank > 0});
  }

  void cut(rank_id rank) {
    world.kill(workers[rank].handle);
  }

  /// The scheduler hears of it before it hears of anything else.
  void cut_at_once(rank_id rank) {
    world.kill_at_once(workers[rank].handle);
    world.run();
  }

  /// Cut, and noticed by both sides.
  void come_back(rank_id rank, incarnation_id life = 1) {
    connect(rank);
    ready(rank, life);
  }

  void report(rank_id rank, job_id job, job_status status,
              incarnation_id life = 1) {
    say(rank, msg::transfers_done{{{job, rank, life, status, 0}}});
  }

  /// The job is done on all ranks.
  void done(job_id job) {
    for (rank_id r = 0; r < workers.size(); ++r)
      report(r, job, job_status::done);
  }

  /// The chunks of a request from `first` on, as the next life has found them
  /// in these slots.
  [[nodiscard]] msg::chunks_kept kept(rank_id rank, incarnation_id life,
                                      const std::string& text,
                                      std::size_t first,
                                      const std::vector<slot_id>& in) const {
    auto out = msg::chunks_kept{rank, life, {}};
    for (auto slot : in) {
      const auto digest
        = core::wide_digest_of({hash_of(text, first++), 0, shape->model});
      out.chunks.push_back({slot, digest.low, digest.high});
    }
    return out;
  }

  /// Takes what a rank has heard since the last call.
  lines heard(rank_id rank) {
    return std::exchange(*workers[rank].log, {});
  }

  lines notices() {
    return std::exchange(ear.notices, {});
  }

  lines answers() {
    return std::exchange(ear.answers, {});
  }

  // -- the engine -------------------------------------------------------------

  template <class Message>
  void call(Message message) {
    message.ticket = ++ticket;
    world.send(uut, std::move(message));
    world.run();
  }

  /// Makes a call, and stops as soon as the scheduler waits for an answer to
  /// it.
  template <class Phase, class Message>
  void begin(Message message) {
    message.ticket = ++ticket;
    world.send(uut, std::move(message));
    while (!std::holds_alternative<Phase>(state().phase) && world.ready() > 0)
      world.step(0);
    ASSERT_TRUE(std::holds_alternative<Phase>(state().phase));
  }

  static prefix_hash hash_of(const std::string& text, std::size_t chunk) {
    return prefix_hash{text.data(), chunk + 1};
  }

  /// Four tokens per letter, and one more.
  void add(request_id id, const std::string& text) {
    const auto tokens = static_cast<token_count>(4 * text.size() + 1);
    auto how = add_request{};
    how.request = id;
    how.prompt_tokens = how.known_tokens = tokens;
    call(msg::add{0, how});
    auto keys = extend_keys{};
    keys.request = id;
    for (std::size_t i = 0; i < text.size(); ++i)
      keys.hashes.push_back(hash_of(text, i));
    call(msg::extend{0, keys});
  }

  token_count lookup(request_id id, token_count known) {
    call(msg::lookup{0, {{id, 0, known}}});
    return ear.hits.at(0).ask_again ? -1 : ear.hits.at(0).tokens;
  }

  /// Takes the whole hit into these blocks.
  void allocate(request_id id, std::vector<block_id> blocks,
                token_count external) {
    auto taken = allocated{};
    taken.request = id;
    taken.external = external;
    taken.hashed = {std::vector<std::uint8_t>(blocks.size())};
    taken.blocks = {std::move(blocks)};
    call(msg::allocate{0, taken});
  }

  /// @returns what is planned, e.g. "S0 L1 F0"
  std::string step(std::vector<step_row> rows = {}) {
    call(msg::step{0, {++last_step, std::move(rows), {}, {}}});
    return plan();
  }

  [[nodiscard]] std::string plan() const {
    return "S" + text_of(ear.plan.stores) + " L" + text_of(ear.plan.loads)
         + " F" + text_of(ear.plan.flush);
  }

  /// Schedules a whole prompt.
  static step_row fresh(request_id id, std::vector<block_id> blocks,
                        token_count tokens) {
    return {id, row_kind::fresh, {std::move(blocks)}, 0, tokens, tokens};
  }

  static step_row running(request_id id, token_count computed) {
    return {id, row_kind::running, {}, computed, 1, computed + 1};
  }

  /// Stores the chunks of a text, in the first slots, and forgets who did.
  void warm(const std::string& text) {
    add(A, text);
    auto blocks = std::vector<block_id>{};
    for (std::size_t i = 0; i <= text.size(); ++i)
      blocks.push_back(static_cast<block_id>(i + 1));
    (void)step({fresh(A, blocks, static_cast<token_count>(4 * text.size()))});
    done(ear.plan.stores.at(0).id);
    call(msg::finish{0, {A, finish_reason::abort, 0, 0}});
    (void)step();
    for (rank_id r = 0; r < workers.size(); ++r)
      (void)heard(r);
    (void)answers();
    (void)events();
  }

  stats counters() {
    call(msg::get_stats{});
    return ear.counters;
  }

  const msg::snapshot_answer& snapshot() {
    call(msg::get_snapshot{});
    return ear.snapshot;
  }

  /// Keys of removed chunks since the last call, each by its number of letters.
  std::vector<std::size_t> events() {
    call(msg::take_events{});
    auto out = std::vector<std::size_t>{};
    for (const auto& event : ear.events)
      for (const auto& key : event.removed)
        out.push_back(key.hash.size());
    return out;
  }

  scheduler_state& state() {
    return state_of<scheduler_state>(uut);
  }

  // -- members ----------------------------------------------------------------

  struct part {
    gpu_worker_actor handle;
    lines* log = nullptr;
  };

  options opts;
  std::shared_ptr<const core::layout> shape;
  engine_ear ear;
  ticket_id ticket = 0;
  step_id last_step = 0;
  cache_manager_actor cache;
  engine_actor engine;
  scheduler_actor uut;
  std::vector<part> workers;
  /// Outlive every handle.
  std::deque<lines> logs;
};

} // namespace kvtide::test
