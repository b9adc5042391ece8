// SPDX-License-Identifier: Apache-2.0

#include "core/host_pool.hpp"

#include "core/arc_lists.hpp"
#include "core/lru_list.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kvtide::core {

namespace {

/// The offer's keys say what the chunk before a candidate is.
bool has_parent(const store_offer& offer, const store_candidate& what) {
  const auto group = what.key.group;
  return what.chunk > 0 && group < offer.keys.size()
      && what.chunk <= offer.keys[group].size();
}

std::optional<chunk_key> parent_of(const store_offer& offer,
                                   const store_candidate& what) {
  if (what.parent)
    return *what.parent;
  if (!has_parent(offer, what))
    return std::nullopt;
  return offer.keys[what.key.group][what.chunk - 1];
}

/// Zero if it is not known.
std::uint64_t parent_digest_of(const store_offer& offer,
                               const store_candidate& what) {
  if (what.parent)
    return key_ref{*what.parent}.digest;
  return has_parent(offer, what)
         ? offer.keys[what.key.group].ref(what.chunk - 1).digest
         : 0;
}

} // namespace

host_pool::host_pool(const config& cfg, const rules& rule)
  : rule_(rule), notes_events_(cfg.events),
    store_threshold_(cfg.store_threshold), chunk_tokens_(cfg.chunk_tokens),
    index_(entries_), allocator_(cfg.slots), changes_(cfg.changes) {
  if (cfg.policy == eviction_policy::arc)
    order_ = std::make_unique<arc_lists>(entries_, cfg.slots,
                                         rule.arc_falls_back_to_t1);
  else
    order_ = std::make_unique<lru_list>(entries_);
}

// -- looking ------------------------------------------------------------------

host_pool::presence host_pool::lookup_key(const chunk_key& key) {
  if (store_threshold_ > 1)
    uses_.add(key);
  const auto slot = index_.find(key);
  if (!slot)
    return presence::miss;
  return entries_[*slot].count == pool_entry::writing ? presence::pending
                                                      : presence::hit;
}

std::optional<slot_id> host_pool::find(const key_ref& key) const {
  return index_.find(key);
}

void host_pool::find_many(const key_view& keys, std::size_t first,
                          std::span<slot_id> out) const {
  for (std::size_t at = 0; at < out.size(); ++at)
    out[at] = index_.find(keys.ref(first + at)).value_or(no_slot);
}

chunk_state host_pool::state_of(const key_ref& key, token_count begin) const {
  const auto slot = index_.find(key);
  if (!slot)
    return order_->remembers(key) ? chunk_state::evicted : chunk_state::absent;
  const auto& entry = entries_[*slot];
  if (entry.count == pool_entry::writing)
    return chunk_state::writing;
  if (entry.loading)
    return chunk_state::loading;
  return entry.first_token > begin ? chunk_state::partial : chunk_state::ready;
}

// -- recency ------------------------------------------------------------------

void host_pool::touch(std::span<const chunk_key> keys) {
  for (auto i = keys.size(); i > 0; --i) {
    if (const auto slot = index_.find(keys[i - 1]))
      order_->touch(*slot);
    else
      order_->touch_absent(keys[i - 1]);
  }
}

void host_pool::touch(const key_view& keys, std::size_t first,
                      std::span<const slot_id> slots) {
  const auto ghosts = order_->has_ghosts();
  for (auto i = slots.size(); i > 0; --i) {
    if (slots[i - 1] != no_slot)
      order_->touch(slots[i - 1]);
    else if (ghosts)
      order_->touch_absent(keys.ref(first + i - 1));
  }
}

void host_pool::move_to_newest(const key_ref& key) {
  if (const auto slot = index_.find(key))
    order_->move_to_newest(*slot);
}

// -- looking ahead ------------------------------------------------------------

void host_pool::expect(std::span<const store_offer> offers) {
  auto absent = std::size_t{0};
  for (const auto& offer : offers)
    for (const auto& what : offer.candidates)
      absent += !index_.find(what.key);
  if (absent <= allocator_.free())
    return;
  constexpr auto nothing = std::numeric_limits<std::uint64_t>::max();
  victims_.clear();
  order_->pick(absent - allocator_.free(), {nothing, {}}, victims_);
  // The row is the slot itself: looking it up brings the place in the index
  // from which it will be erased.
  for (const auto slot : victims_)
    if (const auto row = index_.find_by_digest(index_.digest_at(slot)))
      __builtin_prefetch(&parents_[*row]);
  // Each of them will be compared with a key of whom it has to make room for.
  auto next = std::size_t{0};
  for (const auto& offer : offers)
    for (std::size_t i = 0; i < offer.candidates.size(); ++i, ++next) {
      if (next == victims_.size())
        return;
      const auto& victim = entries_[victims_[next]];
      if (victim.key.group < offer.keys.size()
          && victim.chunk < offer.keys[victim.key.group].size())
        __builtin_prefetch(&offer.keys[victim.key.group].hash(victim.chunk));
    }
}

void host_pool::expect(std::span<const chunk_key> keys) const {
  for (const auto& key : keys)
    if (const auto slot = index_.find(key))
      if (const auto parent = index_.find_by_digest(parents_[*slot]))
        __builtin_prefetch(&entries_[*parent]);
}

// -- stores -------------------------------------------------------------------

store_grant host_pool::prepare_store(const store_offer& offer) {
  auto out = store_grant{};
  sort(offer);
  auto& [wanted, pending] = sorted_;
  if (wanted.size() > allocator_.free()) {
    auto keep = protection{mark_, {}};
    if (rule_.store_leading_part) // R5
      keep.keys = offer.keys;
    victims_.clear();
    order_->pick(wanted.size() - allocator_.free(), keep, victims_);
    const auto room = allocator_.free() + victims_.size();
    if (room < wanted.size())
      out.settled_tokens = shrink_to(offer, room, wanted);
    if (wanted.size() > allocator_.free()) {
      victims_.resize(wanted.size() - allocator_.free());
      evict(victims_, out);
    }
  }
  for (const auto at : wanted) {
    const auto slot = allocator_.take();
    if (insert(offer, offer.candidates[at], slot))
      out.accepted.push_back({at, slot});
    else
      allocator_.give_back(slot);
  }
  for (const auto& skip : pending) {
    const auto& what = offer.candidates[skip.candidate];
    if (what.end_tokens <= out.settled_tokens) // R8
      writes_[skip.slot].skipped.push_back(
        {offer.request, what.key.group, what.chunk});
  }
  return out;
}

void host_pool::sort(const store_offer& offer) {
  auto& out = sorted_;
  out.wanted.clear();
  out.pending.clear();
  ++mark_;
  for (std::uint32_t at = 0; at < offer.candidates.size(); ++at) {
    const auto& key = offer.candidates[at].key;
    if (store_threshold_ > 1 && uses_.count(key) < store_threshold_)
      continue;
    const auto slot = index_.find(key);
    if (!slot) {
      out.wanted.push_back(at);
      continue;
    }
    entries_[*slot].mark = mark_;
    if (entries_[*slot].count == pool_entry::writing)
      out.pending.push_back({at, *slot});
  }
}

/// Cuts `wanted` down to what `room` slots can take.
/// @returns up to which token the candidates are then settled
token_count host_pool::shrink_to(const store_offer& offer, std::size_t room,
                                 std::vector<std::uint32_t>& wanted) const {
  assert(room < wanted.size());
  if (!rule_.store_leading_part) { // R5
    wanted.clear();
    return 0;
  }
  auto ends = std::vector<token_count>{};
  ends.reserve(wanted.size());
  for (const auto at : wanted)
    ends.push_back(offer.candidates[at].end_tokens);
  const auto first_out = ends.begin() + static_cast<std::ptrdiff_t>(room);
  std::nth_element(ends.begin(), first_out, ends.end());
  const auto settled = *first_out - 1;
  std::erase_if(wanted, [&](std::uint32_t at) {
    return offer.candidates[at].end_tokens > settled;
  });
  return settled;
}

void host_pool::evict(std::span<const slot_id> slots, store_grant& out) {
  order_->evict(slots);
  out.evicted.reserve(slots.size());
  for (const auto slot : slots) {
    auto& gone = entries_[slot];
    out.evicted.push_back(gone.key);
    changes_.removed(index_.digest_at(slot));
    index_.erase(slot);
    gone.count = pool_entry::absent;
    allocator_.give_back(slot);
  }
  idle_ -= slots.size();
  if (!notes_events_)
    return;
  auto event = cache_event{};
  event.kind = cache_event::kind_t::removed;
  event.removed.assign(out.evicted.begin(), out.evicted.end());
  events_.push_back(std::move(event));
}

/// @returns false if the offer named the same key before
bool host_pool::insert(const store_offer& offer, const store_candidate& what,
                       slot_id slot) {
  if (slot >= entries_.size()) {
    entries_.resize(std::size_t{slot} + 1);
    parents_.resize(entries_.size());
  }
  auto& fresh = entries_[slot];
  fresh.key = what.key;
  if (!index_.insert(slot))
    return false;
  fresh.count = pool_entry::writing;
  fresh.holds = 0;
  fresh.loading = false;
  fresh.chunk = what.chunk;
  fresh.first_token = what.first_token;
  parents_[slot] = parent_digest_of(offer, what);
  if (notes_events_)
    writes_[slot] = {parent_of(offer, what), what.token_ids, {}};
  order_->inserted(slot);
  ++writing_;
  return true;
}

store_outcome host_pool::complete_store(std::span<const chunk_key> keys,
                                        bool success, bool still_copying) {
  auto out = store_outcome{};
  auto event = cache_event{};
  for (const auto& key : keys) {
    const auto slot = index_.find(key);
    if (!slot || entries_[*slot].count != pool_entry::writing)
      continue;
    --writing_;
    if (success) {
      publish(*slot, event);
      out.gained = true;
    } else {
      unpublish(*slot, still_copying, out);
    }
  }
  if (!event.stored.empty())
    events_.push_back(std::move(event));
  return out;
}

void host_pool::publish(slot_id slot, cache_event& out) {
  auto& done = entries_[slot];
  const auto written = take_write(slot);
  if (notes_events_) {
    const auto group = done.key.group;
    out.stored.push_back(
      {done.key, written.parent, written.token_ids,
       group < chunk_tokens_.size() ? chunk_tokens_[group] : 0});
  }
  changes_.stored(index_.digest_at(slot));
  done.count = pool_entry::idle;
  make_idle(slot);
}

void host_pool::unpublish(slot_id slot, bool still_copying,
                          store_outcome& out) {
  const auto skipped = take_write(slot).skipped;
  out.skipped.insert(out.skipped.end(), skipped.begin(), skipped.end());
  order_->erased(slot);
  index_.erase(slot);
  entries_[slot].count = pool_entry::absent;
  if (still_copying) { // S8
    allocator_.quarantine(slot);
  } else {
    allocator_.give_back(slot);
    out.gained = true;
  }
}

host_pool::write host_pool::take_write(slot_id slot) {
  auto out = write{};
  if (writes_.empty())
    return out; // As long as nobody waits for it and nobody hears of it.
  const auto pos = writes_.find(slot);
  if (pos != writes_.end()) {
    out = std::move(pos.value());
    writes_.erase(pos);
  }
  return out;
}

// -- loads --------------------------------------------------------------------

load_grant host_pool::prepare_load(std::span<const chunk_key> keys,
                                   bool mark_loading) {
  auto out = load_grant{};
  out.slots.reserve(keys.size());
  for (const auto& key : keys) {
    const auto slot = index_.find(key);
    if (!slot || entries_[*slot].count == pool_entry::writing) {
      out.absent = out.slots.size();
      out.slots.clear();
      return out;
    }
    out.slots.push_back(*slot);
  }
  for (const auto slot : out.slots) {
    pin(slot);
    if (mark_loading)
      entries_[slot].loading = true;
  }
  return out;
}

bool host_pool::complete_load(std::span<const chunk_key> keys) {
  auto gained = false;
  for (const auto& key : keys) {
    const auto slot = index_.find(key);
    if (!slot)
      continue;
    auto& read = entries_[*slot];
    if (read.count <= static_cast<std::int32_t>(read.holds))
      continue;
    read.loading = false;
    gained = unpin(*slot) || gained;
  }
  return gained;
}

// -- promises -----------------------------------------------------------------

bool host_pool::hold(promise_id promise, std::span<const slot_id> slots) {
  assert(promise != 0);
  assert(!promises_.contains(promise));
  const auto added = static_cast<std::size_t>(
    std::count_if(slots.begin(), slots.end(),
                  [&](slot_id slot) { return entries_[slot].holds == 0; }));
  if (held_ > 0 && held_ + added > this->slots() / 2) // R11
    return false;
  for (const auto slot : slots) {
    assert(entries_[slot].count >= pool_entry::idle);
    pin(slot);
    if (entries_[slot].holds++ == 0)
      ++held_;
  }
  promises_[promise].assign(slots.begin(), slots.end());
  return true;
}

bool host_pool::release(promise_id promise) {
  const auto pos = promises_.find(promise);
  if (pos == promises_.end())
    return false;
  const auto slots = std::move(pos.value());
  promises_.erase(pos);
  auto gained = false;
  for (const auto slot : slots) {
    if (--entries_[slot].holds == 0)
      --held_;
    gained = unpin(slot) || gained;
  }
  return gained;
}

// -- the whole ----------------------------------------------------------------

void host_pool::reset(std::span<const slot_id> running, bool keep_running) {
  index_.clear();
  order_->clear();
  entries_.clear();
  parents_.clear();
  writes_.clear();
  promises_.clear();
  idle_ = 0;
  writing_ = 0;
  held_ = 0;
  if (keep_running)
    allocator_.restart(running);
  else
    allocator_.clear();
}

void host_pool::keep(std::span<const kept_chunk> named,
                     std::span<const slot_id> running, bool keep_running) {
  const auto kept = find_kept(named, running);
  remove_all_but(kept);
  auto taken = std::vector<slot_id>{};
  for (slot_id slot = 0; slot < kept.size(); ++slot)
    if (kept[slot])
      taken.push_back(slot);
  if (taken.empty())
    return reset(running, keep_running);
  writes_.clear();
  promises_.clear();
  writing_ = 0;
  held_ = 0;
  for (const auto slot : taken)
    if (auto& entry = entries_[slot]; entry.count > pool_entry::idle) {
      entry.count = pool_entry::idle;
      entry.holds = 0;
      make_idle(slot);
    }
  if (!keep_running)
    allocator_.clear();
  allocator_.restart(keep_running ? running : std::span<const slot_id>{},
                     taken);
}

std::vector<bool> host_pool::find_kept(std::span<const kept_chunk> named,
                                       std::span<const slot_id> running) const {
  auto out = std::vector<bool>(entries_.size());
  for (const auto& chunk : named)
    if (chunk.slot < out.size()) {
      const auto& entry = entries_[chunk.slot];
      out[chunk.slot] = entry.count >= pool_entry::idle
                     && wide_digest_of(entry.key) == chunk.digest;
    }
  for (const auto slot : running) // S8
    if (slot < out.size())
      out[slot] = false;
  return out;
}

void host_pool::remove_all_but(const std::vector<bool>& kept) {
  auto event = cache_event{};
  event.kind = cache_event::kind_t::removed;
  for (slot_id slot = 0; slot < kept.size(); ++slot) {
    auto& entry = entries_[slot];
    if (kept[slot] || entry.count == pool_entry::absent)
      continue;
    if (entry.count >= pool_entry::idle)
      event.removed.push_back(entry.key);
    if (entry.count == pool_entry::idle) {
      --idle_;
      order_->became_busy(slot);
    }
    index_.erase(slot);
    order_->erased(slot); // No ghost: nobody decided that it goes.
    entry.count = pool_entry::absent;
  }
  if (notes_events_ && !event.removed.empty())
    events_.push_back(std::move(event));
}

bool host_pool::release_slots(std::span<const slot_id> slots) {
  auto gained = false;
  for (const auto slot : slots)
    gained = allocator_.release(slot) || gained;
  return gained;
}

std::vector<cache_event> host_pool::take_events() {
  return std::exchange(events_, {});
}

std::vector<std::uint64_t> host_pool::digests_in(slot_id first,
                                                 std::size_t count) const {
  auto out = std::vector<std::uint64_t>{};
  const auto last = std::min(entries_.size(), std::size_t{first} + count);
  for (auto slot = first; slot < last; ++slot)
    if (entries_[slot].count >= pool_entry::idle)
      out.push_back(index_.digest_at(slot));
  return out;
}

pool_state host_pool::state() const {
  auto out = pool_state{};
  out.free = allocator_.free();
  out.evictable = idle_;
  out.writing = writing_;
  out.busy = index_.size() - idle_ - writing_;
  out.quarantined = allocator_.quarantined();
  out.held = held_;
  order_->describe(out);
  return out;
}

// -- helpers ------------------------------------------------------------------

void host_pool::pin(slot_id slot) {
  auto& entry = entries_[slot];
  assert(entry.count >= pool_entry::idle);
  if (entry.count++ == pool_entry::idle) {
    --idle_;
    order_->became_busy(slot);
  }
}

/// @returns whether the entry became idle
bool host_pool::unpin(slot_id slot) {
  assert(entries_[slot].count > pool_entry::idle);
  if (--entries_[slot].count != pool_entry::idle)
    return false;
  make_idle(slot);
  return true;
}

void host_pool::make_idle(slot_id slot) {
  ++idle_;
  if (!rule_.recency_per_admission) { // R12
    order_->became_idle(slot);
    return;
  }
  auto newer = std::optional<slot_id>{};
  if (parents_[slot] != 0)
    newer = index_.find_by_digest(parents_[slot]);
  if (newer && entries_[*newer].count != pool_entry::idle)
    newer.reset();
  order_->became_idle_behind(slot, newer);
}

} // namespace kvtide::core
