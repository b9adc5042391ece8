// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test_system.hpp"

#include "actors/cache_manager.hpp"
#include "actors/scheduler.hpp"
#include "core/layout.hpp"
#include "tests/support/actor_world.hpp"
#include "tests/support/breach_ear.hpp"
#include "tests/support/engine_book.hpp"
#include "tests/support/played_engine.hpp"
#include "tests/support/played_rank.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <random>
#include <string_view>
#include <utility>
#include <variant>

namespace kvtide::test {

namespace {

/// Asks the cache manager what the engine's calls do not tell.
using probe_actor = caf::typed_actor<caf::reacts_to<msg::key_states>,
                                     caf::reacts_to<msg::pool_report>>;

/// KVTIDE_TEST_RANKS runs the same tests with ranks of other processes.
bool is_far(rank_id rank) {
  const auto* which = std::getenv("KVTIDE_TEST_RANKS");
  const auto word = std::string_view{which != nullptr ? which : "local"};
  if (word != "local" && word != "remote" && word != "mixed")
    ADD_FAILURE() << "KVTIDE_TEST_RANKS is \"" << word
                  << "\": pass local, remote, or mixed";
  return word == "remote" || (word == "mixed" && rank % 2 == 1);
}

} // namespace

// -- state --------------------------------------------------------------------

struct test_system::state {
  explicit state(system_config cfg)
    : config(std::move(cfg)), shape(std::make_shared<const core::layout>(
                                core::make_layout(config.opts).value())) {
    const auto engine_part = world.spawn([this] { return engine.behavior(); });
    probe = world.spawn([this]() -> probe_actor::behavior_type {
      return {
        [this](const msg::key_states& x) { key_states = x; },
        [this](const msg::pool_report& x) { pool = x; },
      };
    });
    const auto cache
      = world.spawn(cache_manager, cache_manager_config{shape, config.opts});
    around.scheduler = world.spawn(
      kvtide::scheduler, scheduler_config{shape, config.opts, ear.listener()},
      cache, engine_part);
    around.notice
      = [this](std::string text) { engine.notice(std::move(text)); };
    for (rank_id r = 0; r < config.opts.ranks; ++r)
      ranks.emplace_back(around, worker_config(r)).start(config.slots.at(r));
  }

  state(const state&) = delete;

  state& operator=(const state&) = delete;

  ~state() {
    world.run();
    // No handle may outlive the actor system.
    probe = nullptr;
    doomed = nullptr;
    around.scheduler = nullptr;
    for (auto& rank : ranks)
      rank.let_go();
  }

  [[nodiscard]] gpu_worker_config worker_config(rank_id rank) const {
    auto out = worker_config_of(config.opts, rank, 1);
    out.remote = is_far(rank);
    out.idle_delay = config.worker_idle;
    out.on_breach = ear.listener();
    return out;
  }

  // -- calls ------------------------------------------------------------------

  template <class Message>
  void tell(Message message) {
    world.send(around.scheduler, std::move(message));
    go_on();
  }

  /// As if its rank, if there is one, had said so.
  void tell_report(const msg::transfer_done& x) {
    auto message = msg::transfers_done{{x}};
    if (x.rank < ranks.size())
      ranks[x.rank].say(std::move(message));
    else
      world.send(around.scheduler, std::move(message));
    go_on();
  }

  /// Unless calls only enter the mailbox.
  void go_on() {
    if (queued)
      return;
    if (const auto victim = std::exchange(doomed, nullptr)) {
      for (std::size_t i = 0; i < doomed_after && world.ready() > 0; ++i)
        world.step(0);
      caf::anon_send_exit(victim, caf::exit_reason::kill);
    }
    world.run();
  }

  void send_keys(request_id id) {
    if (auto call = book.new_keys(id))
      tell(msg::extend{++ticket, std::move(*call)});
  }

  /// Takes the answer that the last call must have brought.
  template <class Answer>
  Answer take_answer() {
    if (auto found = engine.take<Answer>())
      return std::move(*found);
    if (!queued)
      ADD_FAILURE() << "no answer: " << joined(engine.take_notices(), ", ");
    return {};
  }

  const msg::snapshot_answer& snapshot() {
    tell(msg::get_snapshot{++ticket});
    return engine.snapshot();
  }

  // -- deaths -----------------------------------------------------------------

  template <class Handle>
  void doom(const Handle& victim, std::size_t messages) {
    doomed = caf::actor_cast<caf::strong_actor_ptr>(victim);
    doomed_after = messages;
  }

  scheduler_state& scheduler_now() {
    return state_of<scheduler_state>(around.scheduler);
  }

  // -- members ----------------------------------------------------------------

  system_config config;
  std::shared_ptr<const core::layout> shape;
  engine_book book{shape};
  played_engine engine{book};
  ticket_id ticket = 0;
  bool queued = false;
  breach_ear ear;
  msg::key_states key_states;
  msg::pool_report pool;
  /// To be killed after so many messages of the next call.
  caf::strong_actor_ptr doomed;
  std::size_t doomed_after = 0;
  probe_actor probe;
  played_rank::surroundings around{world, book, {}, {}, false, {}};
  std::deque<played_rank> ranks;
  /// Ends its actors while all else is still there.
  actor_world world;
};

options plain_options(rule_set rules) {
  auto out = options{};
  out.groups.front().tokens_per_block = 4;
  out.blocks_per_chunk = 1;
  out.tokens_per_hash = 4;
  out.host_bytes = 1;
  out.cache_events = true;
  out.rules = rules;
  out.idle_delay = std::chrono::hours{1};
  return out;
}

test_system::test_system(system_config config)
  : st_(std::make_unique<state>(std::move(config))) {
  // nop
}

test_system::test_system(const options& opts, std::uint64_t slots)
  : test_system([&] {
      auto out = system_config{};
      out.opts = opts;
      out.slots.assign(opts.ranks, slots);
      return out;
    }()) {
  // nop
}

test_system::~test_system() = default;

// -- the engine ---------------------------------------------------------------

void test_system::add(request_id id, token_count prompt_tokens,
                      const add_with& how) {
  st_->tell(msg::add{++st_->ticket, st_->book.add(id, prompt_tokens, how)});
  st_->send_keys(id);
}

std::optional<token_count> test_system::lookup(request_id id,
                                               token_count local) {
  auto& row = st_->book.row(id);
  st_->tell(msg::lookup{++st_->ticket, {{id, local, row.known}}});
  const auto answer = st_->take_answer<lookup_answer>();
  if (answer.hits.size() != 1) {
    if (!st_->queued)
      ADD_FAILURE() << "one row asked, " << answer.hits.size() << " answered";
    row.local = row.computed = local;
    return std::nullopt;
  }
  const auto& hit = answer.hits.front();
  row.promise = hit.promise;
  if (hit.ask_again)
    return std::nullopt;
  row.local = row.computed = local;
  return hit.tokens;
}

promise_id test_system::promise(request_id id) const {
  return st_->book.row(id).promise;
}

void test_system::decline(promise_id promise) {
  st_->tell(msg::decline{++st_->ticket, promise});
}

void test_system::alloc(
  request_id id, const block_lists& blocks, token_count external,
  std::optional<std::vector<std::vector<std::uint8_t>>> hashed) {
  st_->tell(
    msg::allocate{++st_->ticket,
                  st_->book.allocate(id, blocks, external, std::move(hashed))});
}

std::string test_system::step(const turn& what) {
  st_->tell(msg::step{++st_->ticket, st_->book.step(what)});
  return st_->book.text().of(st_->take_answer<step_plan>());
}

void test_system::out(request_id id, token_count tokens) {
  auto& row = st_->book.row(id);
  row.known += tokens;
  st_->send_keys(id);
  st_->tell(msg::outputs{
    ++st_->ticket, {st_->book.last_step(), {{id, row.known, row.computed}}}});
}

std::vector<block_id> test_system::finish(request_id id, finish_reason reason) {
  st_->tell(msg::finish{++st_->ticket, st_->book.finish(id, reason)});
  return st_->take_answer<finish_answer>().held;
}

void test_system::truncate(request_id id, token_count tokens) {
  st_->tell(msg::truncate{++st_->ticket, st_->book.truncate(id, tokens)});
}

std::vector<job_id> test_system::reset() {
  st_->tell(msg::reset{++st_->ticket});
  return st_->take_answer<call_done>().in_flight;
}

void test_system::shutdown(std::chrono::milliseconds deadline) {
  st_->tell(
    msg::shutdown{++st_->ticket, std::chrono::nanoseconds{deadline}.count()});
}

void test_system::sleep(std::chrono::milliseconds deadline) {
  st_->tell(
    msg::sleep{++st_->ticket, std::chrono::nanoseconds{deadline}.count()});
  st_->book.lose_blocks();
}

std::optional<std::vector<job_id>> test_system::ended() {
  if (auto answer = st_->engine.take<call_done>())
    return std::move(answer->in_flight);
  return std::nullopt;
}

bool test_system::wake() {
  st_->tell(msg::wake{++st_->ticket});
  return st_->engine.take<call_done>().has_value();
}

explain_answer test_system::explain(request_id id) {
  st_->tell(msg::explain{++st_->ticket, id});
  return st_->take_answer<explain_answer>();
}

void test_system::raw_explain(request_id id) {
  st_->tell(msg::explain{++st_->ticket, id});
}

void test_system::unregister(rank_id rank) {
  st_->ranks[rank].unregister();
}

void test_system::register_again(rank_id rank) {
  st_->ranks[rank].register_again();
}

void test_system::raw_add(const add_request& call) {
  st_->tell(msg::add{++st_->ticket, call});
}

void test_system::raw_extend(const extend_keys& call) {
  st_->tell(msg::extend{++st_->ticket, call});
}

void test_system::raw_allocate(const allocated& call) {
  st_->tell(msg::allocate{++st_->ticket, call});
}

void test_system::raw_step(const step_call& call) {
  st_->tell(msg::step{++st_->ticket, call});
}

void test_system::raw_finish(const finish_call& call) {
  st_->tell(msg::finish{++st_->ticket, call});
}

void test_system::raw_outputs(const outputs_call& call) {
  st_->tell(msg::outputs{++st_->ticket, call});
}

token_count test_system::known(request_id id) const {
  return st_->book.row(id).known;
}

token_count test_system::computed(request_id id) const {
  return st_->book.row(id).computed;
}

void test_system::set_computed(request_id id, token_count tokens) {
  st_->book.row(id).computed = tokens;
}

void test_system::queue_calls() {
  st_->queued = true;
}

void test_system::run_shuffled(std::uint32_t seed) {
  auto random = std::minstd_rand{seed};
  while (st_->world.ready() > 0)
    st_->world.step(random() % st_->world.ready());
}

const std::vector<std::string>& test_system::heard() const {
  return st_->engine.log();
}

void test_system::expect_breaches() {
  st_->ear.expect();
}

void test_system::expect_wrong_calls() {
  st_->ear.expect_wrong_calls();
}

std::vector<std::string> test_system::breaches() {
  return st_->ear.take();
}

bool test_system::pending_work() const {
  return st_->engine.pending_work();
}

std::vector<std::string> test_system::notices() {
  return st_->engine.take_notices();
}

std::vector<std::string> test_system::events() {
  st_->tell(msg::take_events{++st_->ticket});
  auto out = std::vector<std::string>{};
  const auto& text = st_->book.text();
  for (const auto& event : st_->take_answer<events_answer>().events) {
    for (const auto& chunk : event.stored)
      out.push_back("stored " + text.key(chunk.key) + " behind "
                    + (chunk.parent ? text.key(*chunk.parent) : "none") + ", "
                    + std::to_string(chunk.token_ids.size()) + " of "
                    + std::to_string(chunk.tokens) + " tokens");
    for (const auto& key : event.removed)
      out.push_back("removed " + text.key(key));
  }
  return out;
}

// -- rank side and device -----------------------------------------------------

void test_system::hold_compute() {
  st_->around.compute_held = true;
}

void test_system::end_compute() {
  for (auto& rank : st_->ranks)
    rank.end_compute();
  st_->world.run();
}

bool test_system::computes(std::optional<rank_id> rank) const {
  for (rank_id r = 0; r < st_->ranks.size(); ++r)
    if ((!rank || *rank == r)
        && st_->ranks[r].last_ready() != st_->book.last_step())
      return false;
  return true;
}

void test_system::done(job_id job, const ending& how) {
  for (rank_id r = 0; r < st_->ranks.size(); ++r) {
    if (how.rank && *how.rank != r)
      continue;
    if (st_->ranks[r].end_copy(job, how))
      continue;
    pass(st_->config.worker_idle);
    if (!st_->ranks[r].end_copy(job, how))
      ADD_FAILURE() << "job " << job << " is not with the device of rank " << r;
  }
}

void test_system::done(const std::vector<job_id>& jobs) {
  for (auto job : jobs)
    done(job);
}

std::vector<job_id> test_system::copies(rank_id rank) const {
  return st_->ranks[rank].copies();
}

void test_system::pass_deadline() {
  pass(st_->config.opts.job_deadline);
}

void test_system::pass(std::chrono::nanoseconds time) {
  // In short strides: a timer that comes early is armed again.
  const auto stride = std::chrono::nanoseconds{std::chrono::milliseconds{100}};
  for (; time > stride; time -= stride)
    st_->world.advance(stride);
  st_->world.advance(time);
}

std::vector<std::string> test_system::device_log(rank_id rank) {
  return st_->ranks[rank].take_device_log();
}

const std::vector<std::string>& test_system::plans(rank_id rank) const {
  return st_->ranks[rank].plans();
}

bool test_system::plan_comes_before_the_answer(const turn& what) {
  auto& st = *st_;
  const auto& plans = st.ranks.front().plans();
  const auto before = plans.size();
  st.world.send(st.around.scheduler,
                msg::step{++st.ticket, st.book.step(what)});
  while (plans.size() == before && st.world.ready() > 0)
    st.world.step(0);
  const auto answered = st.engine.has<step_plan>();
  const auto planning
    = std::holds_alternative<step_phase>(st.scheduler_now().phase);
  st.world.run();
  (void)st.take_answer<step_plan>();
  return !answered && planning && plans.size() > before;
}

void test_system::report(job_id job, rank_id rank, job_status status,
                         incarnation_id incarnation) {
  st_->tell_report({job, rank, incarnation, status, 0});
}

void test_system::kill_rank(rank_id rank) {
  st_->ranks[rank].kill();
}

void test_system::lose_report(rank_id rank, job_id job, job_status status) {
  st_->ranks[rank].lose_report(job, status);
}

void test_system::lose_stores(rank_id rank) {
  st_->ranks[rank].lose_stores();
}

std::size_t test_system::remembered(rank_id rank) {
  return st_->ranks[rank].worker_state().outcomes.size();
}

void test_system::kill_worker(rank_id rank) {
  st_->ranks[rank].kill_worker();
}

void test_system::kill_orphan(rank_id rank) {
  st_->ranks[rank].kill_orphan();
}

void test_system::doom_request(request_id id, std::size_t messages) {
  st_->doom(st_->scheduler_now().rows.at(id)->actor, messages);
}

void test_system::kill_cache() {
  st_->world.kill(st_->scheduler_now().cache);
}

void test_system::fail_and_kill_cache(job_id job, std::size_t messages) {
  doom_cache(messages);
  for (rank_id r = 0; r + 1 < st_->ranks.size(); ++r)
    done(job, {r, true});
  const auto last = static_cast<rank_id>(st_->ranks.size() - 1);
  st_->tell_report({job, last, 1, job_status::failed, 0});
}

void test_system::doom_cache(std::size_t messages) {
  st_->doom(st_->scheduler_now().cache, messages);
}

void test_system::restart_rank(rank_id rank, std::uint64_t slots) {
  st_->ranks[rank].restart(slots);
}

// -- what is there ------------------------------------------------------------

stats test_system::counters() {
  st_->tell(msg::get_stats{++st_->ticket});
  return st_->take_answer<stats_answer>().values;
}

std::vector<request_id> test_system::tracked() {
  return st_->snapshot().tracked;
}

std::vector<job_id> test_system::jobs() {
  auto out = std::vector<job_id>{};
  for (const auto& x : st_->snapshot().jobs)
    out.push_back(x.job);
  return out;
}

std::vector<std::size_t> test_system::next(request_id id) {
  return st_->snapshot().next.at(id);
}

std::vector<block_id> test_system::watched() {
  return st_->snapshot().watched_blocks;
}

std::string test_system::host(request_id id, std::size_t chunk,
                              group_id group) {
  st_->world.send_as(st_->probe, st_->scheduler_now().cache,
                     msg::lookup_keys{{st_->book.key_of(id, group, chunk)}});
  st_->world.run();
  using presence = core::host_pool::presence;
  switch (st_->key_states.states.at(0)) {
    case presence::miss:
      return "miss";
    case presence::pending:
      return "pending";
    case presence::hit:
      break;
  }
  return "hit";
}

std::vector<std::string> test_system::idle_chunks() {
  st_->world.send_as(st_->probe, st_->scheduler_now().cache,
                     msg::get_pool_report{});
  st_->world.run();
  auto out = std::vector<std::string>{};
  for (const auto& key : st_->pool.state.lru.value())
    out.push_back(st_->book.text().key(key));
  return out;
}

const std::vector<std::string>& test_system::wrong_bytes() const {
  return st_->around.wrong_bytes;
}

bool test_system::empty() {
  const auto now = counters();
  return now.tracked_requests == 0 && now.jobs_in_flight == 0
      && now.quarantined_slots == 0 && now.pinned_slots == 0
      && now.held_slots == 0 && now.writing_slots == 0
      && now.watched_blocks == 0 && now.sliding_entries == 0;
}

} // namespace kvtide::test
