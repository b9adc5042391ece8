// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/pool_replay.hpp"

#include "actors/cache_manager.hpp"
#include "tests/conformance/key_text.hpp"
#include "tests/conformance/want.hpp"
#include "tests/support/message_name.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <typeinfo>
#include <utility>

namespace kvtide::conformance {

namespace {

struct driver_scheduler_state {
  static inline const char* name = "driver-scheduler";
};

scheduler_cache_port::behavior_type
driver_scheduler(scheduler_cache_port::stateful_pointer<driver_scheduler_state>,
                 std::shared_ptr<std::vector<cache_answer>> log) {
  return {
    [log](msg::search_result& x) { log->emplace_back(std::move(x)); },
    [log](msg::stores_prepared& x) { log->emplace_back(std::move(x)); },
    [log](msg::load_prepared& x) { log->emplace_back(std::move(x)); },
    [log](msg::rolled_back& x) { log->emplace_back(std::move(x)); },
    [log](msg::cache_events& x) { log->emplace_back(std::move(x)); },
    [log](msg::pool_report& x) { log->emplace_back(std::move(x)); },
    [](msg::explained&) {}, // No vector asks for one.
    [log](msg::key_states& x) { log->emplace_back(std::move(x)); },
  };
}

/// A job of these chunks; where they lie does not matter to the pool.
job_rows rows_of(const std::vector<chunk_key>& keys) {
  auto out = std::vector<job_row>{};
  for (const auto& key : keys)
    out.push_back({key, 0, 0, {}});
  return out;
}

} // namespace

pool_replay::pool_replay(const pool_scenario& content, stage& actors,
                         recorder& out)
  : content_(content), stage_(actors), out_(out),
    heard_(std::make_shared<std::vector<cache_answer>>()) {
  self_ = stage_.spawn(driver_scheduler, heard_);
  cache_ = stage_.spawn(cache_manager,
                        cache_manager_config{content_.shape, content_.opts});
  say(msg::open_pool{content_.host_chunks});
}

void pool_replay::run() {
  for (const auto& line : content_.lines) {
    if (out_.enough())
      return;
    out_.enter(line.number, line.op);
    const auto got
      = std::visit([this](const auto& call) { return ask(call); }, line.call);
    if (!line.want.is_null() && !got.is_null())
      out_.compare(line.want, got);
    if (!heard_->empty())
      out_.complain("got an answer that is not due");
    heard_->clear();
  }
}

json pool_replay::ask(const lookup_key& call) {
  say(msg::lookup_keys{{call.key}});
  const auto got = answer<msg::key_states>();
  if (!got)
    return {};
  if (got->states.size() != 1)
    return {{"result", nullptr}};
  using presence = core::host_pool::presence;
  const auto state = got->states.front();
  return {{"result", state == presence::hit       ? "hit"
                     : state == presence::pending ? "hit_pending"
                                                  : "miss"}};
}

json pool_replay::ask(const touch& call) {
  say(msg::touch_keys{call.keys});
  return {};
}

json pool_replay::ask(const prepare_store& call) {
  auto offer = core::store_offer{};
  // No request stands behind it: no group has keys to touch.
  offer.keys.resize(content_.shape->groups.size());
  for (const auto& key : call.keys) {
    auto candidate = core::store_candidate{};
    candidate.key = key;
    candidate.chunk = static_cast<std::uint32_t>(offer.candidates.size());
    candidate.end_tokens = candidate.chunk + token_count{1};
    offer.candidates.push_back(std::move(candidate));
  }
  say(msg::prepare_stores{0, {}, {std::move(offer)}});
  const auto got = answer<msg::stores_prepared>();
  if (!got || got->grants.size() != 1)
    return got ? json{{"result", "no grant"}} : json{};
  const auto& grant = got->grants.front();
  if (grant.refused())
    return {{"result", nullptr}};
  auto keys = json::array();
  auto slots = json::array();
  for (const auto& chunk : grant.accepted) {
    keys.push_back(chunk.candidate < call.keys.size()
                     ? key_text(call.keys[chunk.candidate])
                     : "?");
    slots.push_back(chunk.slot);
  }
  return {{"result",
           {{"keys", std::move(keys)},
            {"host_chunks", std::move(slots)},
            {"evicted", key_texts(grant.evicted)}}}};
}

json pool_replay::ask(const complete_store& call) {
  auto report = msg::complete_job{};
  report.kind = job_kind::store;
  report.rows = rows_of(call.keys);
  report.ok = call.success;
  say(msg::complete_jobs{{std::move(report)}});
  if (!call.success)
    (void)answer<msg::rolled_back>();
  return {};
}

json pool_replay::ask(const prepare_load& call) {
  say(msg::prepare_load{0, call.keys, 0});
  const auto got = answer<msg::load_prepared>();
  if (!got)
    return {};
  return {{"host_chunks", got->grant.ok() ? json(got->grant.slots) : json{}}};
}

json pool_replay::ask(const complete_load& call) {
  auto report = msg::complete_job{};
  report.kind = job_kind::load;
  report.rows = rows_of(call.keys);
  say(msg::complete_jobs{{std::move(report)}});
  return {};
}

json pool_replay::ask(const reset_cache&) {
  say(msg::reset_pool{});
  return {};
}

json pool_replay::ask(const take_events&) {
  say(msg::drain_events{});
  const auto got = answer<msg::cache_events>();
  return got ? json{{"events", events_text(got->events)}} : json{};
}

json pool_replay::ask(const pool_state&) {
  say(msg::get_pool_report{});
  const auto got = answer<msg::pool_report>();
  if (!got)
    return {};
  const auto& state = got->state;
  auto result = json{{"free", state.free},
                     {"evictable", state.evictable},
                     {"writing", state.writing}};
  if (state.lru)
    result["lru"] = key_texts(*state.lru);
  if (state.arc)
    result["arc"] = {{"t1", key_texts(state.arc->t1)},
                     {"t2", key_texts(state.arc->t2)},
                     {"b1", key_texts(state.arc->b1)},
                     {"b2", key_texts(state.arc->b2)},
                     {"target", state.arc->target}};
  return result;
}

template <class T>
void pool_replay::say(T call) {
  stage_.send(self_, cache_, std::move(call));
  if (!stage_.run())
    out_.give_up("the actors do not come to rest");
}

template <class T>
std::optional<T> pool_replay::answer() {
  auto heard = std::exchange(*heard_, {});
  for (auto& x : heard)
    if (auto* found = std::get_if<T>(&x))
      return std::move(*found);
  out_.complain("got no answer, want " + test::message_name(typeid(T)));
  return std::nullopt;
}

} // namespace kvtide::conformance
