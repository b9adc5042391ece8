// SPDX-License-Identifier: Apache-2.0

#include "actors/cache_manager.hpp"

#include "actors/publisher.hpp"
#include "core/rules.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <utility>

namespace kvtide {

namespace {

/// Slots that are read at once for a publisher: tens of microseconds.
constexpr std::uint32_t most_slots_at_once = 4'096;

} // namespace

cache_manager_state::~cache_manager_state() {
  if (publisher)
    tell(msg::pool_gone{self->address()});
}

// -- message handlers ---------------------------------------------------------

void cache_manager_state::open(const msg::open_pool& x) {
  const auto& opts = config.opts;
  cache.emplace(core::cache::config{static_cast<std::size_t>(x.slots),
                                    opts.policy, opts.store_threshold,
                                    opts.enable_prefix_caching,
                                    opts.cache_events, publisher != nullptr},
                *config.shape, core::rules_of(opts.rules));
  tell_anew();
}

void cache_manager_state::search(const msg::search& x) {
  auto out = msg::search_result{};
  out.turn = x.turn;
  out.answers.reserve(x.queries.size());
  for (const auto& query : x.queries)
    out.answers.push_back(cache->search(query));
  self->send(sender(), std::move(out));
}

void cache_manager_state::prepare_stores(msg::prepare_stores& x) {
  for (const auto& views : x.moved)
    cache->move_to_newest(views); // R12
  auto grants = cache->prepare_stores(x.offers);
  for (const auto& grant : grants)
    evicted_chunks += grant.evicted.size();
  tell_changes();
  self->send(sender(), msg::stores_prepared{x.turn, std::move(x.offers),
                                            std::move(grants)});
}

void cache_manager_state::prepare_load(const msg::prepare_load& x) {
  self->send(sender(), msg::load_prepared{
                         x.turn, cache->prepare_load(x.keys, x.promise)});
}

void cache_manager_state::complete(const msg::complete_jobs& x) {
  keys.clear();
  for (const auto& work : x.jobs)
    for (const auto& row : work.rows)
      keys.push_back(row.key);
  cache->expect(keys);
  auto rest = std::span<const chunk_key>{keys};
  for (const auto& work : x.jobs) {
    complete(work, rest.first(work.rows.size()));
    rest = rest.subspan(work.rows.size());
  }
  tell_changes();
}

void cache_manager_state::complete(const msg::complete_job& x,
                                   std::span<const chunk_key> done) {
  if (x.kind == job_kind::load) {
    cache->complete_load(done);
    loaded_chunks += x.ok ? done.size() : 0;
  } else {
    auto outcome = cache->complete_store(done, x.ok, x.still_copying);
    stored_chunks += x.ok ? done.size() : 0;
    if (!x.ok)
      self->send(sender(),
                 msg::rolled_back{x.turn, std::move(outcome.skipped)});
  }
  if (!x.moved.empty())
    cache->move_to_newest(x.moved); // R12
}

void cache_manager_state::reset(const msg::reset_pool& x) {
  if (x.kept)
    cache->keep(*x.kept, x.running, x.keep_running);
  else
    cache->reset(x.running, x.keep_running);
  tell_anew();
}

void cache_manager_state::drain_events(const msg::drain_events& x) {
  self->send(sender(), msg::cache_events{x.turn, cache->take_events()});
}

void cache_manager_state::report(const msg::get_pool_report& x) {
  auto out = msg::pool_report{};
  out.turn = x.turn;
  out.state = cache->state();
  out.slots = cache->pool().slots();
  out.evicted_chunks = evicted_chunks;
  out.stored_chunks = stored_chunks;
  out.loaded_chunks = loaded_chunks;
  self->send(sender(), std::move(out));
}

void cache_manager_state::explain(const msg::explain_keys& x) {
  self->send(sender(), msg::explained{x.turn, cache->explain(x.query)});
}

void cache_manager_state::lookup_keys(const msg::lookup_keys& x) {
  auto out = msg::key_states{};
  out.states.reserve(x.keys.size());
  for (const auto& key : x.keys)
    out.states.push_back(cache->pool().lookup_key(key));
  self->send(sender(), std::move(out));
}

void cache_manager_state::read_part(const msg::get_pool_part& x) {
  const auto& pool = cache->pool();
  const auto count = std::min(x.count, most_slots_at_once);
  tell(msg::pool_part{self->address(), x.first, x.first + count,
                      pool.digests_in(x.first, count),
                      x.first + std::size_t{count} >= pool.slots()});
}

// -- helpers ------------------------------------------------------------------

void cache_manager_state::tell_changes() {
  if (auto& log = cache->pool().changes(); !log.empty())
    tell(msg::pool_changed{self->address(), log.take()});
}

void cache_manager_state::tell_anew() {
  if (!publisher)
    return;
  (void)cache->pool().changes().take();
  tell(msg::watch_pool{self->address()});
}

template <class Message>
void cache_manager_state::tell(Message message) const {
  // As nobody, and so on a thread of the publisher's own system.
  if (const auto port = caf::actor_cast<pool_watcher_port>(publisher))
    caf::anon_send(port, std::move(message));
}

scheduler_cache_port cache_manager_state::sender() const {
  return caf::actor_cast<scheduler_cache_port>(self->current_sender());
}

// -- behavior -----------------------------------------------------------------

cache_manager_actor::behavior_type
cache_manager(cache_manager_actor::stateful_pointer<cache_manager_state> self,
              cache_manager_config config) {
  auto& st = self->state;
  st.self = self;
  st.config = std::move(config);
  if (const auto& one = st.config.opts.publisher)
    st.publisher = one->address();
  st.open(msg::open_pool{0});
  return {
    [&st](const msg::open_pool& x) { st.open(x); },
    [&st](const msg::search& x) { st.search(x); },
    [&st](msg::prepare_stores& x) { st.prepare_stores(x); },
    [&st](const msg::prepare_load& x) { st.prepare_load(x); },
    [&st](const msg::complete_jobs& x) { st.complete(x); },
    [&st](const msg::release_promise& x) {
      st.cache->release_promise(x.promise);
    },
    [&st](const msg::release_slots& x) { st.cache->release_slots(x.slots); },
    [&st](const msg::reset_pool& x) { st.reset(x); },
    [&st](const msg::drain_events& x) { st.drain_events(x); },
    [&st](const msg::get_pool_report& x) { st.report(x); },
    [&st](const msg::explain_keys& x) { st.explain(x); },
    [&st](const msg::lookup_keys& x) { st.lookup_keys(x); },
    [&st](const msg::touch_keys& x) { st.cache->pool().touch(x.keys); },
    [&st](const msg::get_pool_part& x) { st.read_part(x); },
  };
}

} // namespace kvtide
