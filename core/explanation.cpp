// SPDX-License-Identifier: Apache-2.0

#include "core/explanation.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace kvtide::core {

namespace {

/// Looks for what ended one search.
class inquiry {
public:
  inquiry(const layout& shape, const rules& rule, host_pool& pool,
          const search_input& in)
    : shape_(shape), rule_(rule), pool_(pool), in_(in) {
    out_.chunks.reserve(in.keys.size());
    for (group_id g = 0; g < in.keys.size(); ++g) {
      auto& states = out_.chunks.emplace_back();
      states.reserve(in.keys[g].size());
      for (std::size_t at = 0; at < in.keys[g].size(); ++at)
        states.push_back(pool.state_of(in.keys[g].ref(at), begin_of(g, at)));
    }
  }

  [[nodiscard]] explanation run(bool watch_loading) {
    out_.tokens = search(rule_, watch_loading);
    if (!out_.tokens)
      blame_delay(watch_loading);
    else
      blame_end();
    return std::move(out_);
  }

private:
  [[nodiscard]] token_count length(group_id group) const {
    return shape_.groups[group].chunk_tokens;
  }

  [[nodiscard]] token_count begin_of(group_id group, std::size_t chunk) const {
    return static_cast<token_count>(chunk) * length(group);
  }

  [[nodiscard]] std::optional<token_count> search(const rules& rule,
                                                  bool watch_loading) {
    return hit_search{shape_, rule, pool_, watch_loading}.run(in_);
  }

  void blame(miss_reason reason, group_id group = 0, std::size_t chunk = 0) {
    out_.reason = reason;
    out_.group = group;
    out_.chunk = chunk;
  }

  // -- "ask again" ------------------------------------------------------------

  /// The search met a chunk that is on its way, or, if it did not, one that is
  /// being loaded.
  void blame_delay(bool watch_loading) {
    const auto pending = !watch_loading || !search(rule_, false);
    const auto state = pending ? chunk_state::writing : chunk_state::loading;
    blame(pending ? miss_reason::writing : miss_reason::loading);
    auto lowest = std::numeric_limits<token_count>::max();
    for (group_id g = 0; g < out_.chunks.size(); ++g) {
      const auto& states = out_.chunks[g];
      for (auto at = static_cast<std::size_t>(in_.local / length(g));
           at < states.size() && begin_of(g, at) < lowest; ++at)
        if (states[at] == state) {
          lowest = begin_of(g, at);
          blame(out_.reason, g, at);
        }
    }
  }

  // -- a hit that goes no further ---------------------------------------------

  void blame_end() {
    const auto end = in_.local + *out_.tokens;
    const auto keyed = keyed_tokens(shape_, in_.keys);
    if (!fits_one_more(in_.local, keyed))
      return blame(miss_reason::no_keys);
    auto unbounded = rule_;
    unbounded.leave_one_token = false;
    if (search(unbounded, false).value_or(0) > *out_.tokens) // R16
      return blame(miss_reason::last_token);
    if (!fits_one_more(end, keyed))
      return;
    if (!fits_one_more(end, in_.known - (shape_.any_sliding ? 1 : 0)))
      return blame(miss_reason::last_token);
    for (const auto group : shape_.search_order)
      if (blame_group(group, end))
        return;
    blame_draft();
  }

  /// Behind `end` a hit that is a chunk longer in each group is below `limit`.
  [[nodiscard]] bool fits_one_more(token_count end, token_count limit) const {
    return std::all_of(
      shape_.groups.begin(), shape_.groups.end(),
      [&](const group_layout& group) {
        return (end / group.chunk_tokens + 1) * group.chunk_tokens <= limit;
      });
  }

  /// Does `group` lack something for a hit that ends a chunk further? The
  /// window of the token behind it has to be there, or all before it.
  bool blame_group(group_id group, token_count end) {
    const auto& states = out_.chunks[group];
    const auto last = static_cast<std::size_t>(end / length(group));
    const auto next = begin_of(group, last + 1);
    const auto window = shape_.groups[group].window_tokens;
    auto from = end;
    if (window > 0)
      from = std::max(in_.local, next - window + 1);
    for (auto at = static_cast<std::size_t>(from / length(group)); at <= last;
         ++at)
      if (blame_chunk(group, at, states[at], from))
        return true;
    return false;
  }

  bool blame_chunk(group_id group, std::size_t chunk, chunk_state state,
                   token_count from) {
    const auto& key = in_.keys[group];
    switch (state) {
      case chunk_state::absent:
        blame(pool_.used_too_rarely(key[chunk]) ? miss_reason::below_threshold
                                                : miss_reason::absent,
              group, chunk);
        return true;
      case chunk_state::evicted:
        blame(miss_reason::evicted, group, chunk);
        return true;
      case chunk_state::writing:
        blame(miss_reason::writing, group, chunk);
        return true;
      case chunk_state::partial:
        if (!rule_.search_verifies_load
            || pool_.first_token_of(key.ref(chunk)) <= from)
          return false;
        blame(miss_reason::window_hole, group, chunk);
        return true;
      case chunk_state::loading:
      case chunk_state::ready:
        break;
    }
    return false;
  }

  /// All is there, so it is what a draft group drops; or, where none is, what
  /// lies first behind the device's own tokens and is not there.
  void blame_draft() {
    for (group_id g = 0; g < shape_.groups.size(); ++g)
      if (shape_.groups[g].draft)
        return blame(
          miss_reason::draft, g,
          static_cast<std::size_t>((in_.local + *out_.tokens) / length(g)));
    for (group_id g = 0; g < shape_.groups.size(); ++g) {
      const auto& states = out_.chunks[g];
      for (auto at = static_cast<std::size_t>(in_.local / length(g));
           at < states.size(); ++at)
        if (blame_chunk(g, at, states[at], begin_of(g, at)))
          return;
    }
  }

  const layout& shape_;
  const rules& rule_;
  host_pool& pool_;
  const search_input& in_;
  explanation out_;
};

std::string place(const explain_answer& x, const layout& shape) {
  const auto first
    = static_cast<token_count>(x.chunk) * shape.groups[x.group].chunk_tokens;
  return "chunk " + std::to_string(x.chunk) + " of group "
       + std::to_string(x.group) + " (tokens " + std::to_string(first) + " to "
       + std::to_string(first + shape.groups[x.group].chunk_tokens - 1) + ")";
}

std::string text_of(const explain_answer& x, const layout& shape) {
  switch (x.reason) {
    case miss_reason::none:
      return "all whole chunks with known hashes are found";
    case miss_reason::offloading_off:
      return "options::host_bytes is zero, so nothing is kept: give it some "
             "memory";
    case miss_reason::asleep:
      return "the engine sleeps: call wake first; what is listed here is kept "
             "until then";
    case miss_reason::own_jobs:
      return "a job of this request is in flight: ask again when it has ended";
    case miss_reason::request_lost:
      return "this request goes on without the cache, as its actor died: add "
             "it again under another id to use the cache";
    case miss_reason::no_read:
      return "the request was added with no_read";
    case miss_reason::rank_away:
      return "a rank is gone or has no registered memory: nothing is found "
             "until every rank has called register_kv";
    case miss_reason::cache_lost:
      return "the host pool's book is lost: call reset to begin a new one";
    case miss_reason::no_keys:
      return "prefix hashes are known for " + std::to_string(x.hashed_tokens)
           + " tokens, which is no whole chunk behind the "
           + std::to_string(x.local)
           + " that the device has: send them with extend before the lookup";
    case miss_reason::last_token:
      return "more is there, but at least one token has to be computed (R16)";
    case miss_reason::absent:
      return place(x, shape) + " is not in the host pool";
    case miss_reason::evicted:
      return place(x, shape)
           + " was evicted: a larger host pool would have kept it";
    case miss_reason::below_threshold:
      return place(x, shape)
           + " is not stored: it was looked up less often than "
             "options::store_threshold asks for";
    case miss_reason::writing:
      return place(x, shape) + " is still on its way to the host";
    case miss_reason::loading:
      return place(x, shape) + " is being loaded by another request";
    case miss_reason::window_hole:
      return place(x, shape)
           + " lacks its first tokens, which the window of a longer hit needs "
             "(R4)";
    case miss_reason::draft:
      return place(x, shape)
           + " belongs to a draft group, whose last chunk does not count "
             "(R14)";
  }
  return {};
}

} // namespace

token_count keyed_tokens(const layout& shape, std::span<const key_view> keys) {
  auto out = max_tokens;
  for (group_id g = 0; g < keys.size(); ++g)
    out = std::min(out, static_cast<token_count>(keys[g].size())
                          * shape.groups[g].chunk_tokens);
  return out;
}

explanation explain_search(const layout& shape, const rules& rule,
                           host_pool& pool, bool watch_loading,
                           const search_input& in) {
  auto quiet = in;
  quiet.uncounted = true;
  return inquiry{shape, rule, pool, quiet}.run(watch_loading);
}

miss_reason first_of(const lookup_obstacles& what) {
  if (what.asleep)
    return miss_reason::asleep;
  if (what.own_jobs)
    return miss_reason::own_jobs;
  if (what.request_lost)
    return miss_reason::request_lost;
  if (what.no_read)
    return miss_reason::no_read;
  if (what.rank_away)
    return miss_reason::rank_away;
  return what.cache_lost ? miss_reason::cache_lost : miss_reason::none;
}

void conclude(const layout& shape, miss_reason obstacle, explanation found,
              explain_answer& out) {
  out.chunks = std::move(found.chunks);
  out.reason = obstacle;
  if (obstacle == miss_reason::own_jobs) {
    out.ask_again = true;
  } else if (obstacle == miss_reason::none) {
    out.ask_again = !found.tokens;
    out.tokens = found.tokens.value_or(0);
    out.reason = found.reason;
    out.group = found.group;
    out.chunk = found.chunk;
  }
  out.text = text_of(out, shape);
}

} // namespace kvtide::core
