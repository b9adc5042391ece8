// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test_system.hpp"

#include "actors/cache_manager.hpp"
#include "actors/gpu_worker.hpp"
#include "actors/scheduler.hpp"
#include "core/layout.hpp"
#include "messages/plan_bytes.hpp"
#include "tests/support/actor_fixture.hpp"
#include "tests/support/breach_ear.hpp"
#include "tests/support/memory_shadow.hpp"
#include "tests/support/token_model.hpp"

#include <caf/actor_cast.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

namespace kvtide::test {

namespace {

// -- neighbours ---------------------------------------------------------------

struct part_state {
  static inline const char* name = "test-part";
};

/// Stands between the scheduler and a worker, and listens.
using tap_actor = caf::typed_actor<
  caf::reacts_to<msg::begin_step>, caf::reacts_to<msg::stores>,
  caf::reacts_to<msg::tick>, caf::reacts_to<msg::report_again>,
  caf::reacts_to<msg::worker_ready>, caf::reacts_to<msg::transfer_done>,
  caf::reacts_to<msg::ticked>>;

/// Asks the cache manager what the engine's calls do not tell.
using probe_actor = caf::typed_actor<caf::reacts_to<msg::key_states>,
                                     caf::reacts_to<msg::pool_report>>;

/// What the test keeps of one rank.
struct rank_part {
  incarnation_id incarnation = 1;
  std::uint64_t slots = 0;
  tap_actor tap;
  gpu_worker_actor worker;
  device_actor device;
  /// Of the life before.
  device_actor orphan;
  memory_shadow memory;
  std::vector<std::string> device_log;
  /// With the device, by id.
  std::map<job_id, job> copies;
  /// Copies that the device must end before another one starts.
  std::map<job_id, std::set<job_id>> before;
  std::set<job_id> late;
  std::set<std::pair<job_id, job_status>> lost_reports;
  bool loses_stores = false;
  std::deque<msg::make_fence> fences;
  std::vector<std::string> plans;
  /// Steps whose compute may go on and has not ended.
  std::deque<step_id> ready;
  step_id last_ready = 0;
  rank_stats stats;
};

// -- the engine's book --------------------------------------------------------

struct engine_row {
  token_count prompt = 0;
  token_count known = 0;
  token_count computed = 0;
  /// Tokens whose hashes were sent.
  token_count hashed = 0;
  token_count local = 0;
  /// `computed` once the load in flight is done.
  token_count loading = 0;
  promise_id promise = 0;
  prefix_hash parent;
  bool scheduled = false;
  bool preempted = false;
  block_lists table;
};

/// One request's part of a step's compute.
struct write {
  request_id request = 0;
  token_count from = 0;
  token_count to = 0;
  block_lists table;
};

std::string name_of(request_id id) {
  return id >= '!' && id <= '~' ? std::string(1, static_cast<char>(id))
                                : std::to_string(id);
}

template <class Range>
std::string joined(const Range& what, const char* between) {
  auto out = std::string{};
  for (const auto& x : what) {
    out += out.empty() ? "" : between;
    if constexpr (std::is_convertible_v<decltype(x), std::string>)
      out += x;
    else
      out += std::to_string(x);
  }
  return out;
}

bool share_a_slot(const job& x, const job& y) {
  return std::any_of(x.rows.begin(), x.rows.end(), [&](const job_row& a) {
    return std::any_of(y.rows.begin(), y.rows.end(),
                       [&](const job_row& b) { return a.slot == b.slot; });
  });
}

const char* name_of(ec code) {
  return to_string(code);
}

} // namespace

// -- state --------------------------------------------------------------------

struct test_system::state {
  explicit state(system_config cfg) : config(std::move(cfg)) {
    shape = std::make_shared<const core::layout>(
      core::make_layout(config.opts).value());
    ranks.resize(config.opts.ranks);
    engine = world.spawn(play_engine, this);
    probe = world.spawn(play_probe, this);
    cache
      = world.spawn(cache_manager, cache_manager_config{shape, config.opts});
    scheduler = world.spawn(
      kvtide::scheduler, scheduler_config{shape, config.opts, ear.listener()},
      cache, engine);
    for (rank_id r = 0; r < ranks.size(); ++r)
      start_rank(r, config.slots.at(r));
  }

  ~state() {
    world.run();
    // No handle may outlive the actor system.
    engine = nullptr;
    probe = nullptr;
    cache = nullptr;
    doomed = nullptr;
    scheduler = nullptr;
    for (auto& part : ranks) {
      part.tap = nullptr;
      part.worker = nullptr;
      part.device = nullptr;
      part.orphan = nullptr;
    }
  }

  // -- what the neighbours do -------------------------------------------------

  static engine_actor::behavior_type
  play_engine(engine_actor::stateful_pointer<part_state>, state* st) {
    return {
      [=](const lookup_answer& x) {
        auto line = std::string{"lookup"};
        for (const auto& hit : x.hits)
          line += " " + name_of(hit.request) + " "
                + (hit.ask_again ? "defer" : std::to_string(hit.tokens)) + " "
                + std::to_string(hit.promise);
        st->answer(x, line);
      },
      [=](const step_plan& x) {
        st->pending_work = x.pending_work;
        st->answer(x, "step " + std::to_string(x.step) + " " + st->text_of(x));
      },
      [=](const finish_answer& x) {
        st->answer(x, "finish " + name_of(x.request) + " ["
                        + joined(x.held, " ") + "]");
      },
      [=](const stats_answer& x) { st->answer(x, "stats"); },
      [=](const events_answer& x) { st->answer(x, "events"); },
      [=](const msg::snapshot_answer& x) { st->snapshot = x; },
      [=](const call_done& x) {
        st->answer(x, "done [" + joined(x.in_flight, " ") + "]");
      },
      [=](const call_failed& x) {
        st->notice("failed " + name_of(x.request) + " "
                   + name_of(x.reason.code));
      },
      [=](const load_done& x) { st->take(x); },
      [=](const load_failed& x) { st->take(x); },
      [=](const blocks_released& x) {
        st->notice("released " + name_of(x.request) + " ["
                   + joined(x.blocks, " ") + "]");
      },
      [=](const rank_lost& x) {
        st->notice("rank_lost " + std::to_string(x.rank));
      },
      [=](const rank_back& x) {
        st->notice("rank_back " + std::to_string(x.rank));
      },
      [=](const overload& x) {
        st->notice("overload " + std::to_string(x.jobs_in_flight));
      },
      [=](const cache_lost&) { st->notice("cache_lost"); },
    };
  }

  static probe_actor::behavior_type
  play_probe(probe_actor::stateful_pointer<part_state>, state* st) {
    return {
      [=](const msg::key_states& x) { st->key_states = x; },
      [=](const msg::pool_report& x) { st->pool = x; },
    };
  }

  static tap_actor::behavior_type
  play_tap(tap_actor::stateful_pointer<part_state> self, state* st,
           rank_id rank) {
    auto& part = st->ranks[rank];
    return {
      [=, &part](const msg::begin_step& x) {
        part.plans.push_back(encode_plan(self->system(), x, {x.step, {}}));
        self->send(part.worker, x);
      },
      [=, &part](const msg::stores& x) {
        part.plans.push_back(
          encode_plan(self->system(), {x.step, {}, {}, {}}, x));
        if (!std::exchange(part.loses_stores, false))
          self->send(part.worker, x);
      },
      [=, &part](const msg::tick& x) { self->send(part.worker, x); },
      [=, &part](const msg::report_again& x) { self->send(part.worker, x); },
      [=](const msg::worker_ready& x) { self->send(st->scheduler, x); },
      [=, &part](const msg::transfer_done& x) {
        if (x.status == job_status::late)
          part.late.insert(x.job);
        if (part.lost_reports.erase({x.job, x.status}) > 0)
          return;
        self->send(st->scheduler, x);
      },
      [=](const msg::ticked& x) { self->send(st->scheduler, x); },
    };
  }

  static rank_side_actor::behavior_type
  play_rank_side(rank_side_actor::stateful_pointer<part_state>, state* st,
                 rank_id rank) {
    return {
      [](const kv_registered&) {},
      [](const kv_unregistered&) {},
      [=](const step_ready& x) {
        st->ranks[rank].ready.push_back(x.step);
        st->ranks[rank].last_ready = x.step;
        if (!st->compute_held)
          st->end_compute(rank);
      },
      [=](const rank_failed& x) {
        st->notice("rank_failed " + std::to_string(x.rank) + " "
                   + name_of(x.reason.code));
      },
      [=](const rank_stats& x) { st->ranks[rank].stats = x; },
    };
  }

  static device_actor::behavior_type
  play_device(device_actor::stateful_pointer<part_state> self, state* st,
              rank_id rank) {
    auto& part = st->ranks[rank];
    return {
      [=, &part](const msg::register_memory&) {
        self->send(part.worker, msg::memory_registered{part.slots, 1, {}});
      },
      [=, &part](const msg::unregister_memory&) {
        self->send(part.worker, msg::memory_unregistered{});
      },
      [=, &part](const msg::submit_jobs& x) {
        auto ids = std::vector<job_id>{};
        for (const auto& work : x.jobs) {
          ids.push_back(work.id);
          part.before[work.id] = {x.after.begin(), x.after.end()};
          for (const auto& [id, other] : part.copies)
            if (share_a_slot(work, other))
              part.before[work.id].insert(id); // S8
          if (!part.copies.emplace(work.id, work).second)
            ADD_FAILURE() << "job " << work.id << " came twice";
        }
        auto line = "submit " + joined(ids, " ");
        if (!x.after.empty())
          line += " after " + joined(x.after, " ");
        part.device_log.push_back(std::move(line));
      },
      [=, &part](const msg::make_fence& x) {
        part.device_log.push_back("fence " + joined(x.jobs, " "));
        part.fences.push_back(x);
        st->answer_fences(rank);
      },
      [=, &part](const msg::device_tick&) {
        self->send(part.worker, msg::device_ticked{never});
      },
      [](const msg::device_woke&) {},
    };
  }

  // -- ranks ------------------------------------------------------------------

  void start_rank(rank_id rank, std::uint64_t slots) {
    auto& part = ranks[rank];
    part.slots = slots;
    part.tap = world.spawn(play_tap, this, rank);
    part.device = world.spawn(play_device, this, rank);
    const auto side = world.spawn(play_rank_side, this, rank);
    auto cfg = gpu_worker_config{};
    cfg.rank = rank;
    cfg.incarnation = part.incarnation;
    cfg.rule = &core::rules_of(config.opts.rules);
    cfg.job_deadline = config.opts.job_deadline;
    cfg.idle_delay = config.worker_idle;
    cfg.order_checks = config.opts.order_checks;
    cfg.on_breach = ear.listener();
    part.worker = world.spawn(gpu_worker, cfg, part.device,
                              scheduler_worker_port{part.tap}, side);
    auto memory = kv_memory{};
    memory.rank = rank;
    world.send(part.worker, msg::register_kv{memory});
    world.run();
  }

  /// A fence is over when its jobs are.
  void answer_fences(rank_id rank) {
    auto& part = ranks[rank];
    while (!part.fences.empty()) {
      const auto& fence_ = part.fences.front();
      if (std::any_of(fence_.jobs.begin(), fence_.jobs.end(),
                      [&](job_id id) { return part.copies.count(id) > 0; }))
        return;
      world.send(part.worker, msg::fence_made{fence_.step, {}});
      part.fences.pop_front();
    }
  }

  void end_compute(rank_id rank) {
    auto& part = ranks[rank];
    if (part.ready.empty())
      return;
    const auto step = part.ready.front();
    part.ready.pop_front();
    for (const auto& x : writes[step])
      part.memory.write(*shape, tokens, x.request, x.table, x.from, x.to);
    world.send(part.worker, msg::end_step{step, {}});
  }

  bool end_copy(rank_id rank, job_id id, const ending& how) {
    auto& part = ranks[rank];
    const auto found = part.copies.find(id);
    if (found == part.copies.end())
      return false;
    const auto work = std::move(found->second);
    part.copies.erase(found);
    if (!how.fail)
      for (auto row : part.memory.copy(*shape, tokens, work))
        if (part.late.count(id) == 0)
          wrong.push_back(text_of(work.kind, id) + " "
                          + chunk_name(work, work.rows[row]));
    world.send(part.worker,
               msg::copy_done{id, !how.fail, how.first_failed_row,
                              how.fail ? "as the test wants" : ""});
    answer_fences(rank);
    world.run();
    return true;
  }

  // -- the engine -------------------------------------------------------------

  template <class Message>
  void tell(Message message) {
    world.send(scheduler, std::move(message));
    if (queued)
      return;
    if (const auto victim = std::exchange(doomed, nullptr)) {
      for (std::size_t i = 0; i < doomed_after && world.ready() > 0; ++i)
        world.step(0);
      caf::anon_send_exit(victim, caf::exit_reason::kill);
    }
    world.run();
  }

  void doom(caf::strong_actor_ptr victim, std::size_t messages) {
    doomed = std::move(victim);
    doomed_after = messages;
  }

  scheduler_state& scheduler_now() {
    return state_of<scheduler_state>(scheduler);
  }

  template <class Answer>
  void answer(const Answer& x, const std::string& text) {
    log.push_back(std::to_string(x.ticket) + ": " + text);
    heard.emplace_back(x);
  }

  void notice(std::string text) {
    log.push_back(text);
    news.push_back(std::move(text));
  }

  /// Takes the answer that the last call must have brought.
  template <class Answer>
  Answer take_answer() {
    const auto found
      = std::find_if(heard.begin(), heard.end(), [](const engine_event& x) {
          return std::holds_alternative<Answer>(x);
        });
    if (found == heard.end()) {
      if (!queued)
        ADD_FAILURE() << "no answer: " << joined(news, ", ");
      return {};
    }
    auto out = std::get<Answer>(std::move(*found));
    heard.erase(found);
    return out;
  }

  void take(const load_done& x) {
    notice("load_done " + name_of(x.request) + " " + std::to_string(x.job));
    auto& row = rows.at(x.request);
    row.computed = row.loading;
  }

  void take(const load_failed& x) {
    news.push_back(
      "load_failed " + name_of(x.request) + " " + std::to_string(x.job)
      + " from " + std::to_string(x.first_bad_token) + " ["
      + joined(x.blocks, " ") + "]" + (x.use_new_blocks ? " new" : ""));
    rows.at(x.request).computed = x.first_bad_token;
  }

  void send_keys(request_id id) {
    auto& row = rows.at(id);
    auto call = extend_keys{};
    call.request = id;
    call.first = static_cast<std::uint64_t>(row.hashed / shape->hash_tokens);
    call.parent = row.parent;
    for (; row.hashed + shape->hash_tokens <= row.known;
         row.hashed += shape->hash_tokens) {
      call.hashes.push_back(tokens.hash(id, row.hashed + shape->hash_tokens));
      for (auto at = row.hashed; at < row.hashed + shape->hash_tokens; ++at)
        call.token_ids.push_back(
          static_cast<std::int32_t>(tokens.prefix(id, at) & 0xffff));
    }
    if (call.hashes.empty())
      return;
    for (group_id g = 0; g < shape->groups.size(); ++g)
      for (std::size_t c = 0;
           static_cast<token_count>(c + 1) * shape->groups[g].chunk_tokens
           <= row.known;
           ++c)
        names.emplace(key_of(id, g, c), chunk_name(id, g, c));
    tell(msg::extend{++ticket, std::move(call)});
  }

  step_call step_of(const turn& what) {
    auto call = step_call{};
    call.step = ++last_step;
    for (auto id : what.preempt) {
      auto& row = rows.at(id);
      row.computed = 0;
      row.preempted = true;
      row.table.clear();
      call.preempted.push_back(id);
    }
    for (const auto& x : what.run) {
      auto& row = rows.at(x.request);
      auto out = step_row{};
      out.request = x.request;
      out.kind = row.preempted ? row_kind::resumed
               : row.scheduled ? row_kind::running
                               : row_kind::fresh;
      out.new_blocks = x.blocks;
      out.computed = row.computed;
      out.scheduled = x.tokens;
      out.known = row.known;
      if (out.kind != row_kind::running)
        row.table.clear();
      row.table.resize(shape->groups.size());
      for (std::size_t g = 0; g < x.blocks.size(); ++g)
        row.table[g].insert(row.table[g].end(), x.blocks[g].begin(),
                            x.blocks[g].end());
      row.scheduled = true;
      row.preempted = false;
      writes[call.step].push_back(
        {x.request, row.computed, row.computed + x.tokens, row.table});
      row.computed += x.tokens;
      call.rows.push_back(std::move(out));
    }
    call.finished = std::exchange(ended, {});
    return call;
  }

  // -- names ------------------------------------------------------------------

  chunk_key key_of(request_id id, group_id group, std::size_t chunk) {
    const auto end
      = static_cast<token_count>(chunk + 1) * shape->groups[group].chunk_tokens;
    return {tokens.hash(id, end), group, shape->model};
  }

  std::string chunk_name(request_id id, group_id group,
                         std::size_t chunk) const {
    auto out = name_of(id) + "#" + std::to_string(chunk);
    if (shape->groups.size() > 1)
      out += "/" + std::to_string(group);
    return out;
  }

  std::string chunk_name(const job& work, const job_row& row) const {
    return chunk_name(work.request, row.key.group, row.chunk);
  }

  std::string key_name(const chunk_key& key) const {
    const auto found = names.find(key);
    return found != names.end() ? found->second : "?";
  }

  static std::string text_of(job_kind kind, job_id id) {
    return (kind == job_kind::store ? "S" : "L") + std::to_string(id);
  }

  std::string text_of(const job& work) const {
    auto parts = std::vector<std::string>{};
    for (const auto& row : work.rows)
      parts.push_back(
        chunk_name(work, row) + (work.kind == job_kind::store ? "<-" : "->")
        + (row.blocks.size() == 1 ? std::to_string(row.blocks.front())
                                  : "[" + joined(row.blocks, " ") + "]"));
    return text_of(work.kind, work.id) + "{" + joined(parts, ",") + "}";
  }

  std::string text_of(const step_plan& plan) const {
    auto parts = std::vector<std::string>{};
    for (const auto& work : plan.loads)
      parts.push_back(text_of(work));
    for (const auto& work : plan.stores)
      parts.push_back(text_of(work));
    if (!plan.flush.empty())
      parts.push_back("flush{" + joined(plan.flush, ",") + "}");
    return parts.empty() ? "-" : joined(parts, " ");
  }

  // -- members ----------------------------------------------------------------

  system_config config;
  std::shared_ptr<const core::layout> shape;
  token_model tokens;
  std::map<request_id, engine_row> rows;
  std::map<chunk_key, std::string> names;
  std::map<step_id, std::vector<write>> writes;
  /// Finished since the last step.
  std::vector<finish_call> ended;
  step_id last_step = 0;
  ticket_id ticket = 0;
  bool compute_held = false;
  bool queued = false;
  bool pending_work = false;

  /// Answers that no call has taken yet.
  std::vector<engine_event> heard;
  /// All that the engine heard.
  std::vector<std::string> log;
  std::vector<std::string> news;
  std::vector<std::string> wrong;
  msg::snapshot_answer snapshot;
  msg::key_states key_states;
  msg::pool_report pool;
  std::deque<rank_part> ranks;
  breach_ear ear;

  /// To be killed after so many messages of the next call.
  caf::strong_actor_ptr doomed;
  std::size_t doomed_after = 0;

  engine_actor engine;
  probe_actor probe;
  cache_manager_actor cache;
  scheduler_actor scheduler;
  /// Ends its actors while all else is still there.
  actor_world world;
};

options plain_options(rule_set rules) {
  auto out = options{};
  out.groups.front().tokens_per_block = 4;
  out.blocks_per_chunk = 1;
  out.tokens_per_hash = 4;
  out.host_bytes = 1;
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
  st_->tokens.add(id, how.like, how.shared);
  auto& row = st_->rows[id] = {};
  row.prompt = row.known = prompt_tokens;
  row.parent = how.parent;
  auto call = add_request{};
  call.request = id;
  call.prompt_tokens = prompt_tokens;
  call.known_tokens = prompt_tokens;
  call.no_read = how.no_read;
  call.no_store = how.no_store;
  call.prompt_only = how.prompt_only;
  call.cap = how.cap;
  st_->tell(msg::add{++st_->ticket, call});
  st_->send_keys(id);
}

std::optional<token_count> test_system::lookup(request_id id,
                                               token_count local) {
  auto& row = st_->rows.at(id);
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
  return st_->rows.at(id).promise;
}

void test_system::decline(promise_id promise) {
  st_->tell(msg::decline{++st_->ticket, promise});
}

void test_system::alloc(
  request_id id, const block_lists& blocks, token_count external,
  std::optional<std::vector<std::vector<std::uint8_t>>> hashed) {
  auto& row = st_->rows.at(id);
  auto call = allocated{id, external, blocks, {}};
  if (hashed) {
    call.hashed = *hashed;
  } else {
    for (std::size_t g = 0; g < blocks.size(); ++g) {
      auto& marks = call.hashed.emplace_back(blocks[g].size(), 0);
      const auto whole = static_cast<std::size_t>(
        row.local / st_->shape->groups[g].block_tokens);
      std::fill_n(marks.begin(), std::min(whole, marks.size()), 1);
    }
  }
  row.loading = row.local + external;
  st_->tell(msg::allocate{++st_->ticket, std::move(call)});
}

std::string test_system::step(const turn& what) {
  st_->tell(msg::step{++st_->ticket, st_->step_of(what)});
  return st_->text_of(st_->take_answer<step_plan>());
}

void test_system::out(request_id id, token_count tokens) {
  auto& row = st_->rows.at(id);
  row.known += tokens;
  st_->send_keys(id);
  st_->tell(msg::outputs{++st_->ticket,
                         {st_->last_step, {{id, row.known, row.computed}}}});
}

std::vector<block_id> test_system::finish(request_id id, finish_reason reason) {
  auto& row = st_->rows.at(id);
  const auto call = finish_call{id, reason, row.known, row.computed};
  st_->ended.push_back(call);
  st_->tell(msg::finish{++st_->ticket, call});
  return st_->take_answer<finish_answer>().held;
}

void test_system::truncate(request_id id, token_count tokens) {
  auto& row = st_->rows.at(id);
  row.known = tokens;
  row.computed = std::min(row.computed, tokens);
  row.hashed = tokens / st_->shape->hash_tokens * st_->shape->hash_tokens;
  st_->tell(msg::truncate{++st_->ticket, {id, tokens}});
}

std::vector<job_id> test_system::reset() {
  st_->tell(msg::reset{++st_->ticket});
  return st_->take_answer<call_done>().in_flight;
}

void test_system::shutdown(std::chrono::milliseconds deadline) {
  st_->tell(
    msg::shutdown{++st_->ticket, std::chrono::nanoseconds{deadline}.count()});
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

token_count test_system::known(request_id id) const {
  return st_->rows.at(id).known;
}

token_count test_system::computed(request_id id) const {
  return st_->rows.at(id).computed;
}

void test_system::set_computed(request_id id, token_count tokens) {
  st_->rows.at(id).computed = tokens;
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
  return st_->log;
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
  return st_->pending_work;
}

std::vector<std::string> test_system::notices() {
  return std::exchange(st_->news, {});
}

std::vector<std::string> test_system::events() {
  st_->tell(msg::take_events{++st_->ticket});
  auto out = std::vector<std::string>{};
  for (const auto& event : st_->take_answer<events_answer>().events) {
    for (const auto& chunk : event.stored)
      out.push_back("stored " + st_->key_name(chunk.key) + " behind "
                    + (chunk.parent ? st_->key_name(*chunk.parent) : "none")
                    + ", " + std::to_string(chunk.token_ids.size()) + " of "
                    + std::to_string(chunk.tokens) + " tokens");
    for (const auto& key : event.removed)
      out.push_back("removed " + st_->key_name(key));
  }
  return out;
}

// -- rank side and device -----------------------------------------------------

void test_system::hold_compute() {
  st_->compute_held = true;
}

void test_system::end_compute() {
  for (rank_id r = 0; r < st_->ranks.size(); ++r)
    st_->end_compute(r);
  st_->world.run();
}

bool test_system::computes(std::optional<rank_id> rank) const {
  for (rank_id r = 0; r < st_->ranks.size(); ++r)
    if ((!rank || *rank == r) && st_->ranks[r].last_ready != st_->last_step)
      return false;
  return true;
}

void test_system::done(job_id job, const ending& how) {
  for (rank_id r = 0; r < st_->ranks.size(); ++r) {
    if (how.rank && *how.rank != r)
      continue;
    if (st_->end_copy(r, job, how))
      continue;
    pass(st_->config.worker_idle);
    if (!st_->end_copy(r, job, how))
      ADD_FAILURE() << "job " << job << " is not with the device of rank " << r;
  }
}

void test_system::done(const std::vector<job_id>& jobs) {
  for (auto job : jobs)
    done(job);
}

std::vector<job_id> test_system::copies(rank_id rank) const {
  auto out = std::vector<job_id>{};
  const auto& part = st_->ranks[rank];
  for (const auto& [id, work] : part.copies) {
    const auto& before = part.before.at(id);
    if (std::none_of(before.begin(), before.end(), [&](job_id other) {
          return part.copies.count(other) > 0;
        }))
      out.push_back(id);
  }
  return out;
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
  return std::exchange(st_->ranks[rank].device_log, {});
}

const std::vector<std::string>& test_system::plans(rank_id rank) const {
  return st_->ranks[rank].plans;
}

bool test_system::plan_comes_before_the_answer(const turn& what) {
  auto& st = *st_;
  const auto before = st.ranks.front().plans.size();
  st.world.send(st.scheduler, msg::step{++st.ticket, st.step_of(what)});
  while (st.ranks.front().plans.size() == before && st.world.ready() > 0)
    st.world.step(0);
  const auto answered
    = std::any_of(st.heard.begin(), st.heard.end(), [](const engine_event& x) {
        return std::holds_alternative<step_plan>(x);
      });
  const auto planning = std::holds_alternative<step_phase>(
    state_of<scheduler_state>(st.scheduler).phase);
  st.world.run();
  (void)st.take_answer<step_plan>();
  return !answered && planning && st.ranks.front().plans.size() > before;
}

void test_system::report(job_id job, rank_id rank, job_status status,
                         incarnation_id incarnation) {
  st_->tell(msg::transfer_done{job, rank, incarnation, status, 0});
}

void test_system::kill_rank(rank_id rank) {
  auto& part = st_->ranks[rank];
  st_->world.kill(part.worker);
  st_->world.kill(part.device);
  st_->world.kill(part.tap);
  part.copies.clear();
  part.fences.clear();
  part.ready.clear();
}

void test_system::lose_report(rank_id rank, job_id job, job_status status) {
  st_->ranks[rank].lost_reports.emplace(job, status);
}

void test_system::lose_stores(rank_id rank) {
  st_->ranks[rank].loses_stores = true;
}

std::size_t test_system::remembered(rank_id rank) {
  return state_of<gpu_worker_state>(st_->ranks[rank].worker).outcomes.size();
}

void test_system::kill_worker(rank_id rank) {
  auto& part = st_->ranks[rank];
  part.orphan = part.device;
  st_->world.kill(part.worker);
  st_->world.kill(part.tap);
  part.fences.clear();
  part.ready.clear();
}

void test_system::kill_orphan(rank_id rank) {
  st_->world.kill(st_->ranks[rank].orphan);
}

void test_system::doom_request(request_id id, std::size_t messages) {
  const auto& actor = st_->scheduler_now().rows.at(id)->actor;
  st_->doom(caf::actor_cast<caf::strong_actor_ptr>(actor), messages);
}

void test_system::kill_cache() {
  st_->world.kill(st_->scheduler_now().cache);
}

void test_system::fail_and_kill_cache(job_id job, std::size_t messages) {
  doom_cache(messages);
  for (rank_id r = 0; r + 1 < st_->ranks.size(); ++r)
    done(job, {r, true});
  st_->tell(msg::transfer_done{job, static_cast<rank_id>(st_->ranks.size() - 1),
                               1, job_status::failed, 0});
}

void test_system::doom_cache(std::size_t messages) {
  const auto& actor = st_->scheduler_now().cache;
  st_->doom(caf::actor_cast<caf::strong_actor_ptr>(actor), messages);
}

void test_system::restart_rank(rank_id rank, std::uint64_t slots) {
  ++st_->ranks[rank].incarnation;
  st_->ranks[rank].copies.clear();
  st_->start_rank(rank, slots);
}

// -- what is there ------------------------------------------------------------

stats test_system::counters() {
  st_->tell(msg::get_stats{++st_->ticket});
  return st_->take_answer<stats_answer>().values;
}

std::vector<request_id> test_system::tracked() {
  st_->tell(msg::get_snapshot{++st_->ticket});
  return st_->snapshot.tracked;
}

std::vector<job_id> test_system::jobs() {
  st_->tell(msg::get_snapshot{++st_->ticket});
  auto out = std::vector<job_id>{};
  for (const auto& x : st_->snapshot.jobs)
    out.push_back(x.job);
  return out;
}

std::vector<std::size_t> test_system::next(request_id id) {
  st_->tell(msg::get_snapshot{++st_->ticket});
  return st_->snapshot.next.at(id);
}

std::vector<block_id> test_system::watched() {
  st_->tell(msg::get_snapshot{++st_->ticket});
  return st_->snapshot.watched_blocks;
}

std::string test_system::host(request_id id, std::size_t chunk,
                              group_id group) {
  st_->world.send_as(st_->probe, st_->scheduler_now().cache,
                     msg::lookup_keys{{st_->key_of(id, group, chunk)}});
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
    out.push_back(st_->key_name(key));
  return out;
}

const std::vector<std::string>& test_system::wrong_bytes() const {
  return st_->wrong;
}

bool test_system::empty() {
  const auto now = counters();
  return now.tracked_requests == 0 && now.jobs_in_flight == 0
      && now.quarantined_slots == 0 && now.pinned_slots == 0
      && now.held_slots == 0 && now.writing_slots == 0
      && now.watched_blocks == 0 && now.sliding_entries == 0;
}

} // namespace kvtide::test
