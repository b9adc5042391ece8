// SPDX-License-Identifier: Apache-2.0

#include "core/search.hpp"

#include "core/round_up.hpp"

#include <algorithm>
#include <cassert>

namespace kvtide::core {

namespace {

/// Special numbers in the memo.
constexpr auto absent = host_pool::no_slot;
constexpr auto unknown = absent - 1;

/// Chunks that a scan looks up before it goes on.
constexpr auto ahead = std::size_t{16};

std::size_t floor_div(token_count tokens, token_count chunk_tokens) {
  return static_cast<std::size_t>(tokens / chunk_tokens);
}

token_count tokens_of(std::size_t chunks, token_count chunk_tokens) {
  return static_cast<token_count>(chunks) * chunk_tokens;
}

} // namespace

struct hit_search::progress {
  /// Where the next pass starts in the search order; its size: no next pass.
  std::size_t todo = 0;
  token_count limit = 0;
  token_count best = 0;
  bool deferred = false;
  bool seen_sliding = false;
};

hit_search::hit_search(const layout& shape, const rules& rule, host_pool& pool,
                       bool watch_loading)
  : shape_(shape), rule_(rule), pool_(pool), watch_loading_(watch_loading),
    memo_(shape.groups.size()) {
  // nop
}

void hit_search::begin(std::span<const key_view> keys) {
  assert(keys.size() == shape_.groups.size());
  for (std::size_t group = 0; group < keys.size(); ++group)
    memo_[group].assign(keys[group].size(), unknown);
}

std::optional<token_count> hit_search::run(const search_input& in) {
  begin(in.keys);
  auto found = fixed_point(in, in.known - (shape_.any_sliding ? 1 : 0));
  while (rule_.search_verifies_load && found && *found > 0) { // R13
    const auto wrong = find_fault(in, *found);
    if (wrong.tokens < in.local + *found)
      found = fixed_point(in, wrong.tokens);
    else if (wrong.pending)
      return std::nullopt;
    else
      break;
  }
  if (!found || *found == 0)
    return found;
  if (watch_loading_ && !in.ignore_pending // R7
      && loading_defers(in, *found))
    return std::nullopt;
  if (rule_.leave_one_token) // R16
    found = std::max<token_count>(0, std::min(*found, in.known - 1 - in.local));
  return found;
}

chunk_range hit_search::reads(const search_input& in, group_id group,
                              token_count tokens) const {
  const auto& shape = shape_.groups[group];
  const auto end = in.local + tokens;
  auto first = in.local;
  if (shape.sliding())
    first = std::max(first, end - shape.window_tokens + 1);
  if (first >= end)
    return {};
  return {floor_div(first, shape.chunk_tokens),
          std::min(units_for(end, shape.chunk_tokens), in.keys[group].size())};
}

std::optional<slot_id> hit_search::slot_of(std::span<const key_view> keys,
                                           group_id group, std::size_t chunk) {
  auto& known = memo_[group][chunk];
  if (known == unknown)
    known = pool_.find(keys[group].ref(chunk)).value_or(absent);
  return known != absent ? std::optional{known} : std::nullopt;
}

std::span<const slot_id> hit_search::slots_from(std::span<const key_view> keys,
                                                group_id group,
                                                std::size_t first) {
  const auto memo = std::span{memo_[group]};
  for (auto at = first; at < memo.size(); ++at) {
    const auto begin = at;
    while (at < memo.size() && memo[at] == unknown)
      ++at;
    pool_.find_many(keys[group], begin, memo.subspan(begin, at - begin));
  }
  return memo.subspan(std::min(first, memo.size()));
}

/// Looks up some chunks ahead of a scan, which will want most of them.
void hit_search::look_ahead(const search_input& in, group_id group,
                            chunk_range span) {
  auto& memo = memo_[group];
  if (span.first < span.last && memo[span.first] == unknown)
    pool_.find_many(
      in.keys[group], span.first,
      std::span{memo}.subspan(span.first, span.last - span.first));
}

// -- the fixed point ----------------------------------------------------------

std::optional<token_count> hit_search::fixed_point(const search_input& in,
                                                   token_count limit) {
  const auto& order = shape_.search_order;
  popped_.assign(shape_.groups.size(), false);
  auto now = progress{};
  now.limit = limit;
  while (now.todo < order.size()) {
    const auto first = now.todo;
    now.todo = order.size();
    now.seen_sliding = false;
    for (auto at = first; at < order.size(); ++at)
      if (!visit(in, order[at], now))
        return 0;
  }
  return now.deferred ? std::nullopt : std::optional{now.best};
}

/// One visit of the search (C4).
/// @returns false if the whole search answers 0
bool hit_search::visit(const search_input& in, group_id group, progress& now) {
  const auto& shape = shape_.groups[group];
  const auto chunk = shape.chunk_tokens;
  const auto keys = in.keys[group].size();
  const auto keyed = tokens_of(keys, chunk);
  const auto first = shape.draft && !popped_[group];
  now.limit = std::min(now.limit, keyed);
  if (now.limit - in.local < chunk)
    return false;
  auto reach = now.limit;
  if (first && (shape.sliding() || rule_.draft_search_goes_further)) // R14
    reach = std::min(now.limit + chunk, keyed);
  const auto span = chunk_range{floor_div(in.local, chunk),
                                std::min(units_for(reach, chunk), keys)};
  const auto found
    = shape.sliding()
      ? window_scan(in, group, span, shape.window_chunks + (first ? 1 : 0))
      : prefix_scan(in, group, span);
  if (!found) {
    now.deferred = true;
  } else {
    auto chunks = *found;
    if (chunks == 0)
      return false;
    if (first) {
      --chunks;
      popped_[group] = true;
    }
    now.limit = std::min(now.limit, tokens_of(span.first + chunks, chunk));
  }
  const auto tokens = now.limit - in.local;
  if (tokens < chunk)
    return false;
  if (tokens < now.best) {
    const auto& order = shape_.search_order;
    if (!shape.draft)
      popped_.assign(popped_.size(), false);
    if (now.deferred) {
      now.deferred = false;
      now.todo = 0;
    } else if (now.seen_sliding && now.todo == order.size()) {
      now.todo = static_cast<std::size_t>(
        std::find_if(order.begin(), order.end(),
                     [&](group_id g) { return shape_.groups[g].sliding(); })
        - order.begin());
    }
  }
  if (shape.sliding())
    now.seen_sliding = true;
  now.best = tokens;
  return true;
}

host_pool::presence hit_search::look_at(const search_input& in, group_id group,
                                        std::size_t chunk) {
  if (!in.uncounted)
    pool_.count_use(in.keys, group, chunk);
  const auto slot = slot_of(in.keys, group, chunk);
  if (!slot)
    return host_pool::presence::miss;
  if (pool_.entry(*slot).count != pool_entry::writing)
    return host_pool::presence::hit;
  return in.ignore_pending ? host_pool::presence::miss // R7
                           : host_pool::presence::pending;
}

hit_search::scan_result hit_search::prefix_scan(const search_input& in,
                                                group_id group,
                                                chunk_range span) {
  auto pending = false;
  auto at = span.first;
  for (; at < span.last; ++at) {
    if ((at - span.first) % ahead == 0)
      look_ahead(in, group, {at, std::min(at + ahead, span.last)});
    const auto seen = look_at(in, group, at);
    if (seen == host_pool::presence::miss)
      break;
    pending = pending || seen == host_pool::presence::pending;
  }
  return pending ? std::nullopt : std::optional{at - span.first};
}

hit_search::scan_result hit_search::window_scan(const search_input& in,
                                                group_id group,
                                                chunk_range span,
                                                std::size_t width) {
  const auto step = std::min(ahead, width);
  auto pending = false;
  auto run = std::size_t{0};
  auto at = span.last;
  while (at > span.first && run < width) {
    if ((span.last - at) % step == 0)
      look_ahead(in, group, {at - std::min(step, at - span.first), at});
    --at;
    const auto seen = look_at(in, group, at);
    pending = pending || seen == host_pool::presence::pending;
    run = seen == host_pool::presence::miss ? 0 : run + 1;
  }
  if (pending)
    return std::nullopt;
  return run == width ? at - span.first + width : run;
}

// -- after it -----------------------------------------------------------------

hit_search::fault hit_search::find_fault(const search_input& in,
                                         token_count tokens) {
  auto out = fault{};
  for (group_id group = 0; group < shape_.groups.size(); ++group) {
    const auto& shape = shape_.groups[group];
    const auto range = reads(in, group, tokens);
    const auto end = in.local + tokens;
    const auto first = std::max(in.local, end - shape.window_tokens + 1);
    for (auto at = range.first; at < range.last; ++at) {
      const auto start = tokens_of(at, shape.chunk_tokens);
      if (start >= out.tokens)
        break;
      const auto slot = slot_of(in.keys, group, at);
      if (slot && pool_.entry(*slot).count == pool_entry::writing
          && !in.ignore_pending) {
        out.pending = true;
        continue;
      }
      auto bad = !slot || pool_.entry(*slot).count == pool_entry::writing;
      if (!bad && shape.sliding()) { // R4
        const auto there = std::min(pool_.entry(*slot).first_token, end);
        bad = std::max(start, first) < there;
      }
      if (bad) {
        out.tokens = start;
        break;
      }
    }
  }
  return out;
}

bool hit_search::loading_defers(const search_input& in, token_count tokens) {
  for (group_id group = 0; group < shape_.groups.size(); ++group) {
    const auto& shape = shape_.groups[group];
    auto first = floor_div(in.local, shape.chunk_tokens);
    const auto last = std::min(units_for(in.local + tokens, shape.chunk_tokens),
                               in.keys[group].size());
    if (shape.sliding() && last > shape.window_chunks)
      first = std::max(first, last - shape.window_chunks);
    for (auto at = first; at < last; ++at) {
      const auto slot = slot_of(in.keys, group, at);
      if (slot && pool_.entry(*slot).loading)
        return true;
    }
  }
  return false;
}

} // namespace kvtide::core
