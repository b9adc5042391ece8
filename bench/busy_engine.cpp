// SPDX-License-Identifier: Apache-2.0

#include "bench/busy_engine.hpp"

#include "bench/load.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <poll.h>
#include <utility>
#include <variant>

namespace kvtide::bench {

namespace {

using namespace std::chrono_literals;

/// Room for what a request generates before its turn to end comes.
constexpr token_count decode_tokens = 1'024;

/// Hits that are declined, and looked up again: one of so many.
constexpr std::uint64_t declined = 8;

constexpr auto patience = 60s;
constexpr auto patience_ms = 60'000;

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "bench-api: %s\n", why.c_str());
  std::exit(1);
}

options make_options(const busy_config& config) {
  auto out = options{};
  out.blocks_per_chunk = 1;
  out.host_bytes = pool_slots * config.block_bytes;
  out.actor_threads = config.actor_threads;
  out.cache_events = true;
  return out;
}

runtime start(const busy_config& config) {
  auto made = runtime::start(make_options(config));
  if (!made)
    die(made.failure().text);
  return std::move(made).value();
}

} // namespace

busy_engine::busy_engine(const busy_config& config, call_clock& clock)
  : config_(config), clock_(clock),
    blocks_per_place_(
      static_cast<std::size_t>((config.prompt + decode_tokens) / block_tokens)),
    memory_((blocks_per_place_ * config.requests + 1) * config.block_bytes),
    runtime_(start(config)), places_(config.requests),
    next_roll_back_(config.requests / 2) {
  auto kv = kv_memory{};
  kv.tensors.push_back(
    {memory_.data(), memory_.size(), memory_kind::host,
     static_cast<std::uint32_t>(memory_.size() / config.block_bytes),
     config.block_bytes, config.block_bytes});
  kv.references.push_back({0, 0, 0, 0, config.block_bytes});
  side().register_kv(std::move(kv));
  while (!registered_)
    listen();
}

rank& busy_engine::side() {
  return runtime_.local_rank(0);
}

void busy_engine::turn() {
  finished_.clear();
  for (std::size_t i = 0; i < config_.churn; ++i) {
    auto& where = places_[next_end_++ % places_.size()];
    if (where.at == stage::running && where.scheduled_before)
      end(where);
    if (where.at == stage::away)
      arrive(where);
  }
  for (auto& where : places_)
    if (where.at == stage::here)
      look_up(where);
  tell_outputs();
  for (std::size_t i = 0; i < config_.churn; ++i)
    roll_back(places_[next_roll_back_++ % places_.size()]);
  clock_.time("get_stats", [&] { return runtime_.get_stats(); });
  clock_.time("explain", [&] { return runtime_.explain(last_request_); });
  clock_.time("take_events", [&] { return runtime_.take_events(); });
  clock_.time("rank: get_stats", [&] { side().get_stats(); });
  if (last_step_ % config_.reset_every == config_.reset_every - 1)
    last_loss_ = clock_.time("reset", [&] { return runtime_.reset(); });
  if (config_.nap_every > 0 && last_step_ % config_.nap_every == 0)
    nap();
  run_step();
}

/// Gives the memory back, as it were, and takes it again: every request has
/// lost its blocks.
void busy_engine::nap() {
  last_loss_ = clock_.time("sleep", [&] { return runtime_.sleep(patience); });
  await_done(last_loss_);
  await_done(clock_.time("wake", [&] { return runtime_.wake(); }));
  for (auto& where : places_)
    where.resumes = where.scheduled_before;
}

void busy_engine::await_done(ticket_id ticket) {
  while (done_ != ticket)
    listen();
}

stats busy_engine::finish() {
  finished_.clear();
  for (auto& where : places_)
    if (where.at != stage::away)
      end(where);
  run_step();
  clock_.begin();
  const auto stopped
    = clock_.time("shutdown", [&] { return runtime_.shutdown(patience); });
  clock_.end();
  await_done(stopped);
  side().unregister_kv();
  while (registered_)
    listen();
  counted_ = false;
  runtime_.get_stats();
  while (!counted_)
    listen();
  return counters_;
}

std::vector<block_id> busy_engine::blocks_of(const place& where,
                                             token_count first,
                                             token_count end) const {
  const auto index = static_cast<std::size_t>(&where - places_.data());
  auto out = std::vector<block_id>(static_cast<std::size_t>(end - first));
  std::iota(out.begin(), out.end(),
            static_cast<block_id>(1 + index * blocks_per_place_
                                  + static_cast<std::size_t>(first)));
  return out;
}

// -- requests -----------------------------------------------------------------

void busy_engine::arrive(place& where) {
  where = {};
  where.id = ++last_request_;
  where.at = stage::here;
  where.prompt = where.id % config_.prompts + 1;
  auto call = add_request{};
  call.request = where.id;
  call.prompt_tokens = call.known_tokens = config_.prompt;
  clock_.time("add", [&] { return runtime_.add(std::move(call)); });
  send_hashes(where, config_.prompt / block_tokens, "extend, whole prompt");
}

void busy_engine::end(place& where) {
  const auto call = finish_call{where.id, finish_reason::length, where.computed,
                                where.computed};
  clock_.time("finish", [&] { return runtime_.finish(call); });
  finished_.push_back(call);
  where.at = stage::away;
}

/// What is generated differs between any two requests.
void busy_engine::send_hashes(place& where, token_count end, const char* name) {
  auto call = extend_keys{};
  call.request = where.id;
  call.first = static_cast<std::uint64_t>(where.hashes);
  call.hashes = hashes_of(where.hashes == 0 ? where.prompt
                                            : config_.prompts + 1 + where.id,
                          where.hashes, end);
  where.hashes = end;
  clock_.time(name, [&] { return runtime_.extend(std::move(call)); });
}

void busy_engine::look_up(place& where) {
  where.at = stage::asked;
  auto rows = std::vector<lookup_row>{{where.id, 0, config_.prompt}};
  clock_.time("lookup", [&] { return runtime_.lookup(std::move(rows)); });
}

/// The last token was a draft that is rejected. Never over a block's border, so
/// that no hash is forgotten.
void busy_engine::roll_back(place& where) {
  if (where.at != stage::running || where.computed <= config_.prompt
      || where.computed % block_tokens < 2)
    return;
  --where.computed;
  clock_.time("truncate", [&] {
    return runtime_.truncate({where.id, where.computed});
  });
}

// -- steps --------------------------------------------------------------------

step_row busy_engine::schedule(place& where) {
  auto out = step_row{};
  out.request = where.id;
  out.computed = where.computed;
  out.scheduled = where.scheduled_before ? 1 : config_.prompt - where.computed;
  out.kind = where.scheduled_before ? row_kind::running : row_kind::fresh;
  where.scheduled_before = true;
  where.computed += out.scheduled;
  out.known = where.computed;
  const auto blocks = (where.computed + block_tokens - 1) / block_tokens;
  if (where.resumes) {
    where.resumes = false;
    where.blocks = 0;
    out.kind = row_kind::resumed;
  }
  if (blocks == where.blocks)
    return out;
  out.new_blocks.push_back(blocks_of(where, where.blocks, blocks));
  where.blocks = blocks;
  return out;
}

void busy_engine::tell_outputs() {
  auto call = outputs_call{last_step_, {}};
  for (const auto& where : places_)
    if (where.at == stage::running && where.scheduled_before)
      call.rows.push_back({where.id, where.computed, where.computed});
  clock_.time("outputs", [&] { return runtime_.outputs(std::move(call)); });
}

/// The plan of the step before has come; that of this one comes while the calls
/// of the next one are made.
void busy_engine::run_step() {
  auto call = step_call{};
  call.step = ++last_step_;
  call.finished = finished_;
  for (auto& where : places_) {
    if (where.at != stage::running)
      continue;
    if (static_cast<std::size_t>(where.computed / block_tokens) + 2
        > blocks_per_place_)
      continue; // Full: its turn to end comes.
    call.rows.push_back(schedule(where));
    if (where.computed / block_tokens > where.hashes)
      send_hashes(where, where.computed / block_tokens, "extend, one hash");
  }
  clock_.time("step", [&] { return runtime_.step(std::move(call)); });
  clock_.time("rank: begin_step", [&] { side().begin_step(last_step_); });
  while (ready_ < last_step_ || planned_ + 1 < last_step_)
    listen();
  end_compute();
}

/// Compute of the step is a moment that somebody else announces.
void busy_engine::end_compute() {
  auto made
    = clock_.time("rank: make_event", [&] { return side().make_event(); });
  if (!made)
    die(made.failure().text);
  const auto event = std::move(made).value();
  auto events = compute_events{event};
  clock_.time("rank: end_step",
              [&] { side().end_step(last_step_, std::move(events)); });
  clock_.time("rank: complete_event", [&] { side().complete_event(event); });
}

// -- what comes back ----------------------------------------------------------

/// Waits until one side has something to say, and takes it.
void busy_engine::listen() {
  auto sides = std::array<pollfd, 2>{pollfd{runtime_.event_fd(), POLLIN, 0},
                                     pollfd{side().event_fd(), POLLIN, 0}};
  if (::poll(sides.data(), sides.size(), patience_ms) < 1)
    die("the runtime was silent for a minute");
  if (sides[0].revents != 0) {
    auto events = clock_.time("poll", [&] { return runtime_.poll(); });
    for (const auto& event : events)
      std::visit([this](const auto& x) { on(x); }, event);
    clock_.time("free what poll gave", [&] { events.clear(); });
  }
  if (sides[1].revents != 0) {
    const auto events
      = clock_.time("rank: poll", [&] { return side().poll(); });
    for (const auto& event : events)
      std::visit([this](const auto& x) { on(x); }, event);
  }
}

busy_engine::place& busy_engine::place_of(request_id id) {
  for (auto& where : places_)
    if (where.id == id)
      return where;
  die("the runtime speaks of request " + std::to_string(id)
      + ", which is not there");
}

void busy_engine::on(const lookup_answer& x) {
  for (const auto& hit : x.hits) {
    auto& where = place_of(hit.request);
    if (hit.ask_again || x.ticket < last_loss_) {
      where.at = stage::here;
      continue;
    }
    if (hit.tokens == 0) {
      where.at = stage::running;
      continue;
    }
    if (hit.promise != 0 && ++hits_ % declined == 0) {
      clock_.time("decline", [&] { return runtime_.decline(hit.promise); });
      where.at = stage::here;
      continue;
    }
    where.at = stage::loading;
    where.computed = hit.tokens;
    auto call = allocated{};
    call.request = hit.request;
    call.external = hit.tokens;
    call.blocks = {blocks_of(where, 0, config_.prompt / block_tokens)};
    call.hashed = {std::vector<std::uint8_t>(call.blocks[0].size(), 0)};
    clock_.time("allocate", [&] { return runtime_.allocate(std::move(call)); });
  }
}

void busy_engine::on(const load_done& x) {
  place_of(x.request).at = stage::running;
}

/// A reset or a nap came between the lookup and the load's step.
void busy_engine::on(const load_failed& x) {
  auto& where = place_of(x.request);
  if (x.use_new_blocks)
    die("a copy is late");
  where.computed = x.first_bad_token;
  where.at = stage::running;
}

void busy_engine::on(const step_plan& x) {
  planned_ = x.step;
}

void busy_engine::on(const stats_answer& x) {
  counters_ = x.values;
  counted_ = true;
}

void busy_engine::on(const call_done& x) {
  done_ = x.ticket;
}

void busy_engine::on(const call_failed& x) {
  die(x.reason.text);
}

void busy_engine::on(const runtime_lost& x) {
  die(x.reason.text);
}

void busy_engine::on(const kv_registered& x) {
  if (x.reason.code != ec::none)
    die(x.reason.text);
  registered_ = true;
}

void busy_engine::on(const kv_unregistered&) {
  registered_ = false;
}

void busy_engine::on(const step_ready& x) {
  ready_ = x.step;
}

void busy_engine::on(const rank_failed& x) {
  die(x.reason.text);
}

} // namespace kvtide::bench
