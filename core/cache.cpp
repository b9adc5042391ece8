// SPDX-License-Identifier: Apache-2.0

#include "core/cache.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::core {

namespace {

/// Offers that the pool looks ahead: what it fetches for more would be gone
/// from the processor's cache before it is used.
constexpr std::size_t expected_at_once = 32;

host_pool::config pool_config(const cache::config& cfg, const layout& shape) {
  auto out = host_pool::config{};
  out.slots = cfg.slots;
  out.policy = cfg.policy;
  out.store_threshold = cfg.store_threshold;
  out.events = cfg.events;
  out.changes = cfg.changes;
  for (const auto& group : shape.groups)
    out.chunk_tokens.push_back(group.chunk_tokens);
  return out;
}

} // namespace

cache::cache(const config& cfg, layout shape, const rules& rule)
  : shape_(std::move(shape)), rule_(rule),
    enable_prefix_caching_(cfg.enable_prefix_caching),
    pool_(pool_config(cfg, shape_), rule),
    search_(shape_, rule, pool_, cfg.enable_prefix_caching) {
  // nop
}

// -- the calls of the scheduler -----------------------------------------------

search_answer cache::search(const search_query& query) {
  const auto in
    = search_input{query.keys, query.local, query.known, query.ignore_pending};
  auto out = search_answer{};
  if (query.skip_reading) {
    search_.begin(query.keys);
    out.tokens = 0;
  } else {
    out.tokens = search_.run(in);
  }
  out.end_tokens = query.local + out.tokens.value_or(0);
  if (!rule_.recency_per_admission || (query.touch && out.tokens)) {
    touch(query.keys, out.end_tokens);
    out.touched = true;
  }
  if (out.tokens && query.promise != 0 && rule_.hold_hits) // R11
    out.held = hold(in, *out.tokens, query.promise);
  return out;
}

explanation cache::explain(const search_query& query) {
  const auto in
    = search_input{query.keys, query.local, query.known, query.ignore_pending};
  return explain_search(shape_, rule_, pool_, enable_prefix_caching_, in);
}

std::vector<store_grant>
cache::prepare_stores(std::span<const store_offer> offers) {
  auto out = std::vector<store_grant>{};
  out.reserve(offers.size());
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (i % expected_at_once == 0)
      pool_.expect(
        offers.subspan(i, std::min(expected_at_once, offers.size() - i)));
    const auto& offer = offers[i];
    out.push_back(pool_.prepare_store(offer));
    if (!rule_.recency_per_admission && !out.back().accepted.empty()
        && !offer.keys.empty()) {
      search_.begin(offer.keys);
      touch(offer.keys, offer.hit_tokens);
    }
  }
  return out;
}

load_grant cache::prepare_load(std::span<const chunk_key> keys,
                               promise_id promise) {
  auto out = pool_.prepare_load(keys, enable_prefix_caching_);
  out.gained = pool_.release(promise);
  return out;
}

store_outcome cache::complete_store(std::span<const chunk_key> keys,
                                    bool success, bool still_copying) {
  return pool_.complete_store(keys, success, still_copying);
}

bool cache::complete_load(std::span<const chunk_key> keys) {
  return pool_.complete_load(keys);
}

bool cache::release_promise(promise_id promise) {
  return pool_.release(promise);
}

void cache::move_to_newest(std::span<const key_view> keys) {
  if (!rule_.recency_per_admission)
    return;
  for (const auto& view : keys)
    for (auto at = view.size(); at > 0; --at)
      pool_.move_to_newest(view.ref(at - 1));
}

void cache::reset(std::span<const slot_id> running, bool keep_running) {
  pool_.reset(running, keep_running);
}

void cache::keep(std::span<const kept_chunk> named,
                 std::span<const slot_id> running, bool keep_running) {
  pool_.keep(named, running, keep_running);
}

bool cache::release_slots(std::span<const slot_id> slots) {
  return pool_.release_slots(slots);
}

std::vector<cache_event> cache::take_events() {
  return pool_.take_events();
}

pool_state cache::state() const {
  return pool_.state();
}

// -- helpers ------------------------------------------------------------------

/// One access to a request's keys (C5). Uses what the last
/// search or `begin` looked up.
void cache::touch(std::span<const key_view> keys, token_count hit_tokens) {
  for (group_id group = 0; group < keys.size(); ++group) {
    const auto& shape = shape_.groups[group];
    const auto hit_chunks
      = static_cast<std::size_t>(hit_tokens / shape.chunk_tokens);
    auto first = std::size_t{0};
    if (shape.sliding() && hit_chunks > shape.window_chunks)
      first = hit_chunks - shape.window_chunks;
    pool_.touch(keys[group], first, search_.slots_from(keys, group, first));
  }
}

bool cache::hold(const search_input& in, token_count tokens,
                 promise_id promise) {
  scratch_.clear();
  for (group_id group = 0; group < shape_.groups.size(); ++group) {
    const auto range = search_.reads(in, group, tokens);
    for (auto at = range.first; at < range.last; ++at)
      if (const auto slot = search_.slot_of(in.keys, group, at))
        scratch_.push_back(*slot);
  }
  pool_.release(promise);
  return !scratch_.empty() && pool_.hold(promise, scratch_);
}

} // namespace kvtide::core
