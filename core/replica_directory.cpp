// SPDX-License-Identifier: Apache-2.0

#include "core/replica_directory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <limits>

namespace kvtide::core {

namespace {

/// Less than a quarter of the room has to be free before a replica is asked
/// for everything again, or a full table would be filled over and over.
constexpr bool has_much_room(std::size_t keys, std::size_t max_keys) {
  return keys <= max_keys - max_keys / 4;
}

} // namespace

replica_directory::replica_directory(const config& cfg)
  : max_keys_(cfg.max_keys) {
  seats_.reserve(max_replicas);
  holders_.max_load_factor(0.8F);
}

// -- replicas -----------------------------------------------------------------

replica_directory::welcome replica_directory::join(const std::string& name,
                                                   std::uint64_t incarnation,
                                                   seat_id& id) {
  const auto named = [&](const seat& x) { return x.taken && x.name == name; };
  auto at = std::find_if(seats_.begin(), seats_.end(), named);
  if (at != seats_.end() && incarnation < at->incarnation)
    return welcome::older;
  if (at == seats_.end())
    at = std::find_if(seats_.begin(), seats_.end(),
                      [](const seat& x) { return !x.taken; });
  if (at == seats_.end()) {
    if (seats_.size() == max_replicas)
      return welcome::full;
    at = seats_.emplace(seats_.end());
  }
  id = static_cast<seat_id>(at - seats_.begin());
  clear(id);
  const auto chosen = at->taken ? at->chosen : choices_;
  *at = {};
  at->name = name;
  at->incarnation = incarnation;
  at->taken = true;
  at->chosen = chosen;
  return welcome::seated;
}

replica_directory::verdict replica_directory::apply(seat_id id,
                                                    std::uint64_t incarnation,
                                                    const batch& what) {
  assert(id < seats_.size() && seats_[id].taken);
  auto& who = seats_[id];
  if (incarnation != who.incarnation)
    return verdict::older;
  if (what.sequence <= who.sequence)
    return verdict::repeated;
  if (what.starts_over) {
    clear(id);
    who.left_out = 0;
    who.in_step = true;
  } else if (!who.in_step || what.sequence != who.sequence + 1) {
    who.in_step = false;
    who.whole = false;
    return verdict::gap;
  }
  who.sequence = what.sequence;
  who.whole = !what.more;
  // Makes room before it is needed.
  for (const auto digest : what.removed)
    remove(id, digest);
  for (const auto digest : what.stored)
    add(id, digest);
  return verdict::applied;
}

void replica_directory::leave(seat_id id) {
  assert(id < seats_.size());
  clear(id);
  seats_[id] = {};
}

// -- questions ----------------------------------------------------------------

std::vector<replica_directory::holding>
replica_directory::holdings(std::span<const chunk_run> runs) const {
  auto out = std::vector<holding>{};
  const auto everybody = taken();
  auto tokens = std::array<token_count, max_replicas>{};
  auto chunks = std::array<std::size_t, max_replicas>{};
  if (!runs.empty())
    tokens.fill(std::numeric_limits<token_count>::max());
  for (const auto& run : runs) {
    auto still = everybody;
    auto length = std::size_t{0};
    const auto end_here = [&](std::uint64_t who) {
      for (; who != 0; who &= who - 1) {
        const auto id = static_cast<std::size_t>(std::countr_zero(who));
        const auto whole = static_cast<token_count>(length) * run.chunk_tokens;
        tokens[id] = std::min(tokens[id], whole);
        if (&run == runs.data())
          chunks[id] = length;
      }
    };
    for (const auto digest : run.digests) {
      const auto at = holders_.find(digest);
      const auto have = at == holders_.end() ? 0 : at->second;
      end_here(still & ~have);
      still &= have;
      if (still == 0)
        break;
      ++length;
    }
    end_here(still);
  }
  for (seat_id id = 0; id < seats_.size(); ++id)
    if (seats_[id].taken)
      out.push_back({id, tokens[id], chunks[id]});
  return out;
}

std::optional<replica_directory::holding>
replica_directory::choose(const std::vector<holding>& all) {
  const auto worse = [this](const holding& x, const holding& y) {
    return x.tokens != y.tokens ? x.tokens < y.tokens
                                : seats_[x.seat].chosen > seats_[y.seat].chosen;
  };
  const auto best = std::max_element(all.begin(), all.end(), worse);
  if (best == all.end())
    return std::nullopt;
  seats_[best->seat].chosen = ++choices_;
  return *best;
}

// -- the whole ----------------------------------------------------------------

bool replica_directory::is_whole(seat_id id) const noexcept {
  return seats_[id].whole && seats_[id].left_out == 0;
}

bool replica_directory::could_be_whole(seat_id id) const noexcept {
  return seats_[id].whole && seats_[id].left_out > 0
      && has_much_room(holders_.size(), max_keys_);
}

std::size_t replica_directory::replicas() const noexcept {
  return static_cast<std::size_t>(std::popcount(taken()));
}

std::size_t replica_directory::bytes() const noexcept {
  // Beside its pair, a place in the table says how far it is from its own.
  constexpr auto place = sizeof(holders::value_type) + sizeof(std::uint64_t);
  return holders_.bucket_count() * place;
}

// -- helpers ------------------------------------------------------------------

std::uint64_t replica_directory::taken() const noexcept {
  auto out = std::uint64_t{0};
  for (seat_id id = 0; id < seats_.size(); ++id)
    if (seats_[id].taken)
      out |= bit(id);
  return out;
}

void replica_directory::add(seat_id id, std::uint64_t digest) {
  auto at = holders_.find(digest);
  if (at == holders_.end()) {
    if (holders_.size() >= max_keys_) {
      ++seats_[id].left_out;
      return;
    }
    at = holders_.emplace(digest, 0).first;
  }
  seats_[id].keys += (at->second & bit(id)) == 0;
  at.value() |= bit(id);
}

void replica_directory::remove(seat_id id, std::uint64_t digest) {
  const auto at = holders_.find(digest);
  if (at == holders_.end() || (at->second & bit(id)) == 0)
    return;
  --seats_[id].keys;
  at.value() &= ~bit(id);
  if (at->second == 0)
    holders_.erase(at);
}

void replica_directory::clear(seat_id id) {
  if (seats_[id].keys == 0)
    return;
  // What moves up behind an erased place may be seen twice, which does no harm.
  for (auto at = holders_.begin(); at != holders_.end();) {
    at.value() &= ~bit(id);
    at = at->second == 0 ? holders_.erase(at) : std::next(at);
  }
  seats_[id].keys = 0;
}

} // namespace kvtide::core
