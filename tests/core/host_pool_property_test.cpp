// SPDX-License-Identifier: Apache-2.0

/// @file
/// Random call sequences: the reference rules against a naive model, the safe
/// rules against what must hold whatever is called.

#include "core/host_pool.hpp"
#include "tests/core/naive_pool.hpp"
#include "tests/core/pool_keys.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kvtide::core {
namespace {

using names = std::vector<std::string>;

std::vector<chunk_key> keys_named(const names& list) {
  auto out = std::vector<chunk_key>{};
  for (const auto& name : list)
    out.push_back(named_key(name));
  return out;
}

eviction_policy any_policy() {
  return *rc::gen::element(eviction_policy::lru, eviction_policy::arc);
}

// -- reference ----------------------------------------------------------------

/// Some of the keys "0/0" to "9/0", none twice, in any order.
names any_names() {
  auto out = names{};
  for (const auto number : *rc::gen::unique<std::vector<int>>(
         *rc::gen::inRange<std::size_t>(1, 5), rc::gen::inRange(0, 10)))
    out.push_back(std::to_string(number) + "/0");
  return out;
}

void same_state(const host_pool& uut, const naive_pool& model) {
  const auto now = uut.state();
  RC_ASSERT(now.free == model.free());
  RC_ASSERT(now.evictable == model.idle());
  if (now.lru)
    RC_ASSERT(names_of(*now.lru) == model.lru);
  if (!now.arc)
    return;
  RC_ASSERT(names_of(now.arc->t1) == model.t1);
  RC_ASSERT(names_of(now.arc->t2) == model.t2);
  RC_ASSERT(names_of(now.arc->b1) == model.b1);
  RC_ASSERT(names_of(now.arc->b2) == model.b2);
  RC_ASSERT(now.arc->target == model.target);
}

void store_in_both(host_pool& uut, naive_pool& model, const names& keys) {
  const auto offer = offer_of(keys_named(keys));
  const auto got = uut.prepare_store(offer);
  const auto want = model.prepare_store(keys);
  RC_ASSERT(got.refused() == !want.has_value());
  if (!want)
    return;
  RC_ASSERT(names_of(got.evicted) == want->evicted);
  RC_ASSERT(got.accepted.size() == want->keys.size());
  for (std::size_t at = 0; at < want->keys.size(); ++at) {
    const auto& chunk = got.accepted[at];
    RC_ASSERT(name_of(offer.candidates[chunk.candidate].key) == want->keys[at]);
    RC_ASSERT(chunk.slot == want->slots[at]);
  }
}

RC_GTEST_PROP(HostPoolProperty, FollowsTheNaiveModelUnderReferenceRules, ()) {
  auto model = naive_pool{};
  model.slots = *rc::gen::inRange<std::size_t>(1, 7);
  const auto policy = any_policy();
  model.arc = policy == eviction_policy::arc;
  model.threshold = *rc::gen::inRange(1, 3);
  auto uut = host_pool{
    {model.slots, policy, static_cast<std::uint32_t>(model.threshold), {}},
    reference_rules};
  auto loads = std::vector<names>{};
  const auto turns = *rc::gen::inRange(0, 100);
  for (auto turn = 0; turn < turns; ++turn) {
    const auto keys = any_names();
    switch (*rc::gen::inRange(0, 9)) {
      case 0:
        for (const auto& key : keys) {
          const auto got = uut.lookup_key(named_key(key));
          const auto want = model.lookup(key);
          RC_ASSERT((got == host_pool::presence::hit) == (want == "hit"));
          RC_ASSERT((got == host_pool::presence::miss) == (want == "miss"));
        }
        break;
      case 1:
        uut.touch(keys_named(keys));
        model.touch(keys);
        break;
      case 2: {
        const auto got = uut.prepare_load(keys_named(keys));
        const auto want = model.prepare_load(keys);
        RC_ASSERT(got.ok() == want.has_value());
        if (!want)
          break;
        RC_ASSERT(std::equal(got.slots.begin(), got.slots.end(), want->begin(),
                             want->end()));
        loads.push_back(keys);
        break;
      }
      case 3:
        if (loads.empty())
          break;
        uut.complete_load(keys_named(loads.back()));
        model.complete_load(loads.back());
        loads.pop_back();
        break;
      case 4:
      case 5: {
        const auto success = *rc::gen::inRange(0, 4) > 0;
        uut.complete_store(keys_named(keys), success);
        model.complete_store(keys, success);
        break;
      }
      case 6:
        if (*rc::gen::inRange(0, 10) > 0)
          break;
        uut.reset({});
        model.reset();
        loads.clear();
        break;
      default:
        store_in_both(uut, model, keys);
        break;
    }
    same_state(uut, model);
  }
}

// -- safe ---------------------------------------------------------------------

/// Calls a safe pool in random but legal ways and keeps account of it.
class driver {
public:
  driver(std::size_t slots, eviction_policy policy)
    : slots_(slots), pool_({slots, policy, 1, {}}, safe_rules) {
    for (const auto* prompt : {"a", "b", "c"}) {
      const auto hashes = numbered(prompt, prompt_chunks);
      views_.push_back({view_of(hashes, 0), view_of(hashes, 1)});
    }
  }

  void turn() {
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
      case 1:
      case 2:
        store();
        break;
      case 3:
      case 4:
      case 5:
        end_store();
        break;
      case 6:
        load();
        break;
      case 7:
        end_load();
        break;
      case 8:
        hold();
        break;
      case 9:
        release();
        break;
      case 10:
        if (*rc::gen::inRange(0, 8) == 0)
          reset();
        else
          move_to_newest();
        break;
      default:
        end_late_copy();
        break;
    }
    check();
  }

  void finish() {
    while (!stores_.empty())
      end_store();
    while (!loads_.empty())
      end_load();
    while (!promises_.empty())
      release();
    while (!late_.empty())
      end_late_copy();
    check();
    const auto now = pool_.state();
    RC_ASSERT(now.busy == 0u);
    RC_ASSERT(now.writing == 0u);
    RC_ASSERT(now.held == 0u);
    RC_ASSERT(now.quarantined == 0u);
    RC_ASSERT(now.free + now.evictable == slots_);
  }

private:
  static constexpr std::size_t prompt_chunks = 4;

  struct job {
    std::vector<chunk_key> keys;
    std::vector<slot_id> slots;
  };

  template <class T>
  static T take_any(std::vector<T>& from) {
    const auto at = *rc::gen::inRange<std::size_t>(0, from.size());
    auto out = from[at];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
    return out;
  }

  void store() {
    const auto prompt = *rc::gen::inRange<std::size_t>(0, views_.size());
    const auto first = *rc::gen::inRange<std::uint32_t>(0, prompt_chunks);
    auto keys = std::vector<chunk_key>{};
    for (const auto& view : views_[prompt])
      for (std::size_t at = first; at < prompt_chunks; ++at)
        keys.push_back(view[at]);
    auto offer = offer_of(keys, prompt, first);
    offer.keys = views_[prompt];
    const auto before = pool_.state();
    const auto grant = pool_.prepare_store(offer);
    check_grant(offer, grant, before);
    auto made = job{};
    for (const auto& chunk : grant.accepted) {
      RC_ASSERT(chunk.slot < slots_);
      RC_ASSERT(late_.count(chunk.slot) == 0u);
      for (const auto& other : stores_)
        RC_ASSERT(std::count(other.slots.begin(), other.slots.end(), chunk.slot)
                  == 0);
      made.keys.push_back(offer.candidates[chunk.candidate].key);
      made.slots.push_back(chunk.slot);
    }
    if (!made.keys.empty())
      stores_.push_back(made);
  }

  /// R5: the part that is settled is the largest that fits, and nothing of the
  /// request itself was evicted for it.
  void check_grant(const store_offer& offer, const store_grant& grant,
                   const pool_state& before) {
    for (const auto& gone : grant.evicted)
      for (const auto& view : offer.keys)
        for (std::size_t at = 0; at < view.size(); ++at)
          RC_ASSERT(gone != view[at]);
    for (const auto& what : offer.candidates)
      if (what.end_tokens <= grant.settled_tokens)
        RC_ASSERT(pool_.find(what.key).has_value());
    if (!grant.refused())
      return;
    auto next = all_tokens;
    for (const auto& what : offer.candidates)
      if (what.end_tokens > grant.settled_tokens && !pool_.find(what.key))
        next = std::min(next, what.end_tokens);
    auto needed = std::size_t{0};
    for (const auto& what : offer.candidates)
      if (what.end_tokens <= next && !pool_.find(what.key))
        ++needed;
    auto own_idle = std::size_t{0};
    for (const auto& view : offer.keys)
      for (std::size_t at = 0; at < view.size(); ++at)
        if (const auto slot = pool_.find(view[at]))
          own_idle += pool_.entry(*slot).count == pool_entry::idle ? 1u : 0u;
    const auto room = before.free + before.evictable - own_idle;
    RC_ASSERT(grant.accepted.size() <= room);
    RC_ASSERT(grant.accepted.size() + needed > room);
  }

  void end_store() {
    if (stores_.empty())
      return;
    const auto ended = take_any(stores_);
    const auto how = *rc::gen::inRange(0, 5);
    const auto out = pool_.complete_store(ended.keys, how > 1, how == 1);
    if (how == 1)
      late_.insert(ended.slots.begin(), ended.slots.end());
    RC_ASSERT(out.gained == (how != 1));
  }

  void load() {
    const auto keys = ready_keys();
    const auto grant = pool_.prepare_load(keys, true);
    RC_ASSERT(grant.ok());
    if (!keys.empty())
      loads_.push_back({keys, grant.slots});
  }

  void end_load() {
    if (!loads_.empty())
      pool_.complete_load(take_any(loads_).keys);
  }

  void hold() {
    auto slots = std::vector<slot_id>{};
    for (const auto& key : ready_keys())
      slots.push_back(*pool_.find(key));
    const auto before = pool_.state().held;
    const auto held = pool_.hold(++last_promise_, slots);
    const auto after = pool_.state().held;
    if (before == 0)
      RC_ASSERT(held);
    else
      RC_ASSERT(!held || after <= slots_ / 2);
    if (held)
      promises_.push_back(last_promise_);
    else
      RC_ASSERT(after == before);
  }

  void release() {
    if (!promises_.empty())
      pool_.release(take_any(promises_));
  }

  void reset() {
    auto running = std::vector<slot_id>{};
    for (const auto* jobs : {&stores_, &loads_})
      for (const auto& open : *jobs)
        running.insert(running.end(), open.slots.begin(), open.slots.end());
    // Late copies run on: their jobs are in flight.
    running.insert(running.end(), late_.begin(), late_.end());
    pool_.reset(running);
    late_ = {running.begin(), running.end()};
    stores_.clear();
    loads_.clear();
    promises_.clear();
  }

  void end_late_copy() {
    if (late_.empty())
      return;
    const auto slot = *rc::gen::elementOf(late_);
    late_.erase(late_.find(slot));
    RC_ASSERT(pool_.release_slots(std::vector{slot})
              == (late_.count(slot) == 0));
  }

  void move_to_newest() {
    for (const auto& view : views_[*rc::gen::inRange<std::size_t>(0, 3)])
      for (auto at = view.size(); at > 0; --at)
        pool_.move_to_newest(view[at - 1]);
  }

  /// A random part of what can be read, none twice.
  std::vector<chunk_key> ready_keys() {
    auto out = std::vector<chunk_key>{};
    for (const auto& views : views_)
      for (const auto& view : views)
        for (std::size_t at = 0; at < view.size(); ++at)
          if (const auto slot = pool_.find(view[at]))
            if (pool_.entry(*slot).count != pool_entry::writing
                && *rc::gen::inRange(0, 4) == 0)
              out.push_back(view[at]);
    return out;
  }

  void check() {
    const auto now = pool_.state();
    RC_ASSERT(now.free + now.evictable + now.writing + now.busy
                + now.quarantined
              == slots_);
    // Every slot has one owner, and every count is what its users add up to.
    auto owners = std::set<slot_id>(late_.begin(), late_.end());
    RC_ASSERT(now.quarantined == owners.size());
    auto writing = std::size_t{0};
    for (const auto& views : views_)
      for (const auto& view : views)
        for (std::size_t at = 0; at < view.size(); ++at)
          if (const auto slot = pool_.find(view[at])) {
            RC_ASSERT(owners.insert(*slot).second);
            check_count(view[at], *slot);
            writing += pool_.entry(*slot).count == pool_entry::writing;
          }
    RC_ASSERT(owners.size() + now.free == slots_);
    RC_ASSERT(writing == now.writing);
  }

  void check_count(const chunk_key& key, slot_id slot) {
    const auto uses = [&](const std::vector<job>& jobs) {
      auto out = 0;
      for (const auto& open : jobs)
        out += static_cast<int>(
          std::count(open.keys.begin(), open.keys.end(), key));
      return out;
    };
    const auto& entry = pool_.entry(slot);
    RC_ASSERT(uses(stores_) == (entry.count == pool_entry::writing ? 1 : 0));
    if (entry.count != pool_entry::writing)
      RC_ASSERT(entry.count == uses(loads_) + static_cast<int>(entry.holds));
  }

  std::size_t slots_;
  host_pool pool_;
  std::vector<per_group<key_view>> views_;
  std::vector<job> stores_;
  std::vector<job> loads_;
  /// Once per job that may still touch it.
  std::multiset<slot_id> late_;
  std::vector<promise_id> promises_;
  promise_id last_promise_ = 0;
};

RC_GTEST_PROP(HostPoolProperty, OwnsEverySlotOnceAndBalancesItsCounts, ()) {
  auto uut = driver{*rc::gen::inRange<std::size_t>(1, 16), any_policy()};
  const auto turns = *rc::gen::inRange(0, 80);
  for (auto turn = 0; turn < turns; ++turn)
    uut.turn();
  uut.finish();
}

} // namespace
} // namespace kvtide::core
