// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/cache_event.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"
#include "kvtide/options.hpp"

#include "core/explanation.hpp"
#include "core/host_pool.hpp"
#include "core/key_list.hpp"
#include "core/layout.hpp"
#include "core/pool_state.hpp"
#include "core/rules.hpp"
#include "core/search.hpp"
#include "core/short_list.hpp"
#include "core/store_offer.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kvtide::core {

/// One lookup of one request.
struct search_query {
  /// Every key of the request, one view per group in configured order.
  per_group<key_view> keys;
  /// Tokens that the device already has.
  token_count local = 0;
  /// Tokens whose ids are known.
  token_count known = 0;
  /// The request does not read from the host: the hit is 0.
  bool skip_reading = false;
  /// The request was deferred often enough (R7).
  bool ignore_pending = false;
  /// Under R12: this is the request's access for this admission, if it is
  /// answered. Reference rules touch at every lookup.
  bool touch = true;
  /// Under R11: hold what the load would read under this promise. Zero holds
  /// nothing.
  promise_id promise = 0;
};

/// Answers a `search_query`.
struct search_answer {
  /// Tokens to load behind `local`; none means "ask again".
  std::optional<token_count> tokens;
  /// `local` plus the hit: keep it for `store_offer::hit_tokens`.
  token_count end_tokens = 0;
  /// The promise holds what the load reads. If false, nothing needs to be
  /// released.
  bool held = false;
  /// The access of `search_query::touch` was made.
  bool touched = false;
};

/// Everything that the cache manager decides: pool, search, promises. Moves no
/// bytes. Deterministic: equal calls give equal answers. Not thread-safe.
class cache {
public:
  struct config {
    std::size_t slots = 0;
    eviction_policy policy = eviction_policy::lru;
    std::uint32_t store_threshold = 1;
    bool enable_prefix_caching = true;
    bool events = true;
    /// See `host_pool::changes`.
    bool changes = false;
  };

  /// `rule` must outlive the cache; the constants of core/rules.hpp do.
  cache(const config& cfg, layout shape, const rules& rule);

  cache(const cache&) = delete;
  cache& operator=(const cache&) = delete;

  // -- the calls of the scheduler ---------------------------------------------

  /// Searches, accesses and holds (C3, C4, R11, R12).
  [[nodiscard]] search_answer search(const search_query& query);

  /// What `search` would answer, and why no more. Changes nothing: no access,
  /// no use, no hold.
  [[nodiscard]] explanation explain(const search_query& query);

  /// Asks the pool for the offers of one step in their order (C8). Answers one
  /// grant per offer.
  [[nodiscard]] std::vector<store_grant>
  prepare_stores(std::span<const store_offer> offers);

  /// Pins the keys of a load, then ends the promise that held them. If a key is
  /// absent, nothing is pinned; the promise ends all the same.
  [[nodiscard]] load_grant prepare_load(std::span<const chunk_key> keys,
                                        promise_id promise = 0);

  /// Jobs with these keys will end one after the other. Without effect, but for
  /// the time that it saves.
  void expect(std::span<const chunk_key> keys) const {
    pool_.expect(keys);
  }

  /// Ends a store job, keys in the order of its rows. With `still_copying` the
  /// slots of a failed job stay out of use until `release_slots`.
  store_outcome complete_store(std::span<const chunk_key> keys, bool success,
                               bool still_copying = false);

  /// Ends a load job: when every rank has reported or is fenced off.
  /// @returns whether an entry became idle
  bool complete_load(std::span<const chunk_key> keys);

  /// @returns whether an entry became idle
  bool release_promise(promise_id promise);

  /// All keys of a request to the newest end, tail first, groups in order
  /// (R12). Does nothing under reference rules.
  void move_to_newest(std::span<const key_view> keys);

  /// Forgets everything; `running` are the slots of jobs in flight, which stay
  /// out of use if `keep_running` (R9).
  void reset(std::span<const slot_id> running, bool keep_running = true);

  /// As `reset`, but for what `named` says of the pool of a rank's next life.
  void keep(std::span<const kept_chunk> named, std::span<const slot_id> running,
            bool keep_running = true);

  /// @returns whether a slot became free
  bool release_slots(std::span<const slot_id> slots);

  [[nodiscard]] std::vector<cache_event> take_events();

  [[nodiscard]] pool_state state() const;

  /// The pool alone, for vectors of level `host_pool`.
  [[nodiscard]] host_pool& pool() noexcept {
    return pool_;
  }

private:
  void touch(std::span<const key_view> keys, token_count hit_tokens);

  bool hold(const search_input& in, token_count tokens, promise_id promise);

  layout shape_;
  const rules& rule_;
  bool enable_prefix_caching_;
  host_pool pool_;
  hit_search search_;
  std::vector<slot_id> scratch_;
};

} // namespace kvtide::core
