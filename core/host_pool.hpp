// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/cache_event.hpp"
#include "kvtide/explain.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"
#include "kvtide/options.hpp"

#include "core/change_log.hpp"
#include "core/eviction_order.hpp"
#include "core/kept_parts.hpp"
#include "core/key_index.hpp"
#include "core/pool_entry.hpp"
#include "core/pool_state.hpp"
#include "core/rules.hpp"
#include "core/slot_allocator.hpp"
#include "core/store_offer.hpp"
#include "core/use_counter.hpp"

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kvtide::core {

/// Which chunks lie in which slots of the host pool, who needs them, and who
/// goes first (C9). Moves no bytes. Deterministic; not thread-safe.
class host_pool {
public:
  struct config {
    std::size_t slots = 0;
    eviction_policy policy = eviction_policy::lru;
    /// A chunk is stored only from its n-th lookup on; 1 turns this off.
    std::uint32_t store_threshold = 1;
    /// Tokens per chunk of each group, for events.
    std::vector<token_count> chunk_tokens;
    /// Note what is stored and removed, for `take_events`.
    bool events = true;
    /// Note which chunks come and go, for `changes`.
    bool changes = false;
  };

  /// Names no slot.
  static constexpr slot_id no_slot = std::numeric_limits<slot_id>::max();

  enum class presence : std::uint8_t { miss, pending, hit };

  /// `rule` must outlive the pool; the constants of core/rules.hpp do.
  host_pool(const config& cfg, const rules& rule);

  host_pool(const host_pool&) = delete;
  host_pool& operator=(const host_pool&) = delete;

  // -- looking ----------------------------------------------------------------

  /// Counts as a use of the key (C10), not as an access.
  [[nodiscard]] presence lookup_key(const chunk_key& key);

  /// Adds one to the use count of a request's key, as `lookup_key` does.
  void count_use(std::span<const key_view> keys, group_id group,
                 std::size_t chunk) {
    if (store_threshold_ > 1)
      uses_.add(keys[group][chunk]);
  }

  /// Looks without any effect.
  [[nodiscard]] std::optional<slot_id> find(const key_ref& key) const;

  /// As `find` for the chunks of a request from `first` on, one for each place
  /// in `out`; `no_slot` for those that are absent.
  void find_many(const key_view& keys, std::size_t first,
                 std::span<slot_id> out) const;

  /// @pre `slot` came from `find` and the pool did not change since
  [[nodiscard]] const pool_entry& entry(slot_id slot) const noexcept {
    return entries_[slot];
  }

  // -- explaining: without any effect -----------------------------------------

  /// @param begin the chunk's first token
  [[nodiscard]] chunk_state state_of(const key_ref& key,
                                     token_count begin) const;

  /// It is not stored before it is looked up more often (C10).
  [[nodiscard]] bool used_too_rarely(const chunk_key& key) const {
    return store_threshold_ > 1 && uses_.count(key) < store_threshold_;
  }

  /// The first token of the chunk that is there.
  /// @pre the key is present
  [[nodiscard]] token_count first_token_of(const key_ref& key) const {
    return entries_[*index_.find(key)].first_token;
  }

  // -- recency ----------------------------------------------------------------

  /// One access to each key, from the last to the first.
  void touch(std::span<const chunk_key> keys);

  /// The same for the chunks of a request from `first` on; `slots` are what
  /// `find_many` says of them.
  void touch(const key_view& keys, std::size_t first,
             std::span<const slot_id> slots);

  /// Newest end of its list, without an access (R12). Callers go from the last
  /// key to the first.
  void move_to_newest(const key_ref& key);

  // -- looking ahead: without effect, but for the time that it saves ----------

  /// Asks memory for what `prepare_store` of these offers will read, one after
  /// the other, so that it waits for all of it at once.
  void expect(std::span<const store_offer> offers);

  /// The same for the ends of jobs with these keys.
  void expect(std::span<const chunk_key> keys) const;

  // -- stores -----------------------------------------------------------------

  /// Gives slots to candidates that are not present in any form. All or
  /// nothing, or the leading part that fits (R5).
  [[nodiscard]] store_grant prepare_store(const store_offer& offer);

  /// Ends a store. Keys that are not being written are skipped. After a
  /// failure the entries are gone; with `still_copying` their slots stay out of
  /// use until `release_slots`.
  store_outcome complete_store(std::span<const chunk_key> keys, bool success,
                               bool still_copying = false);

  // -- loads ------------------------------------------------------------------

  /// Pins every key, or none. With `mark_loading` they enter the set of chunks
  /// that are being loaded.
  [[nodiscard]] load_grant prepare_load(std::span<const chunk_key> keys,
                                        bool mark_loading = false);

  /// Unpins; removes the keys from the set of chunks being loaded. Keys that
  /// are not pinned by a load are skipped.
  /// @returns whether an entry became idle
  bool complete_load(std::span<const chunk_key> keys);

  // -- promises ---------------------------------------------------------------

  /// Holds the entries in `slots` under a new promise (R11): always if no other
  /// promise holds anything, else only if all promises together then hold at
  /// most half of the slots.
  /// @pre `promise` is not zero and not in use; every slot holds an entry that
  ///      is not being written, none twice
  /// @returns whether they are held
  bool hold(promise_id promise, std::span<const slot_id> slots);

  /// Ends a promise. Unknown ones are ignored.
  /// @returns whether an entry became idle
  bool release(promise_id promise);

  // -- the whole --------------------------------------------------------------

  /// Forgets entries, counts, promises and free slots. Slots in `running` (a
  /// copy may still touch them) stay out of use until `release_slots`. Without
  /// `keep_running` all are handed out again, as reference rules want (R9, S8).
  void reset(std::span<const slot_id> running, bool keep_running = true);

  /// A rank's memory is another one. As `reset`, but what a slot of `named` has
  /// under the key of that digest stays: if it is complete, and no copy in
  /// `running` may touch it. It is idle then; the promises end. Events tell
  /// what goes, in the order of slots. Slots out of range are ignored.
  /// @param named no slot twice
  void keep(std::span<const kept_chunk> named, std::span<const slot_id> running,
            bool keep_running = true);

  /// The last copy that could touch these slots has ended. Slots that are not
  /// out of use are ignored.
  /// @returns whether a slot became free
  bool release_slots(std::span<const slot_id> slots);

  /// Drains the events since the last call, in order.
  [[nodiscard]] std::vector<cache_event> take_events();

  /// Chunks that came and went since they were last taken, but for those that
  /// a `reset` took: whoever resets tells.
  [[nodiscard]] change_log& changes() noexcept {
    return changes_;
  }

  /// Digests of the complete chunks in the slots from `first` on, `count` of
  /// them at most.
  [[nodiscard]] std::vector<std::uint64_t> digests_in(slot_id first,
                                                      std::size_t count) const;

  [[nodiscard]] pool_state state() const;

  [[nodiscard]] std::size_t slots() const noexcept {
    return allocator_.slots();
  }

private:
  /// What few entries need, and only while they are being written.
  struct write {
    /// For events: the chunk before it.
    std::optional<chunk_key> parent;
    std::vector<std::int32_t> token_ids;
    std::vector<chunk_ref> skipped;
  };

  /// Candidates of one offer, sorted by what the pool has of them.
  struct sorting {
    /// Absent ones: indices of candidates.
    std::vector<std::uint32_t> wanted;
    /// Those that another job is writing.
    std::vector<store_grant::chunk> pending;
  };

  /// Fills `sorted_`.
  void sort(const store_offer& offer);

  token_count shrink_to(const store_offer& offer, std::size_t room,
                        std::vector<std::uint32_t>& wanted) const;

  void evict(std::span<const slot_id> slots, store_grant& out);

  bool insert(const store_offer& offer, const store_candidate& what,
              slot_id slot);

  void publish(slot_id slot, cache_event& out);

  void unpublish(slot_id slot, bool still_copying, store_outcome& out);

  write take_write(slot_id slot);

  [[nodiscard]] std::vector<bool>
  find_kept(std::span<const kept_chunk> named,
            std::span<const slot_id> running) const;

  void remove_all_but(const std::vector<bool>& kept);

  void pin(slot_id slot);

  bool unpin(slot_id slot);

  void make_idle(slot_id slot);

  const rules& rule_;
  bool notes_events_ = true;
  std::uint32_t store_threshold_ = 1;
  std::vector<token_count> chunk_tokens_;
  entry_table entries_;
  key_index<entry_table> index_;
  /// By slot: digest of the key before it in the same group; zero if unknown.
  std::vector<std::uint64_t> parents_;
  std::unique_ptr<eviction_order> order_;
  /// Of the offer at hand; kept for their room.
  sorting sorted_;
  std::vector<slot_id> victims_;
  slot_allocator allocator_;
  use_counter uses_;
  std::size_t idle_ = 0;
  std::size_t writing_ = 0;
  std::size_t held_ = 0;
  std::uint64_t mark_ = 0;
  tsl::robin_map<slot_id, write> writes_;
  tsl::robin_map<promise_id, std::vector<slot_id>> promises_;
  std::vector<cache_event> events_;
  change_log changes_;
};

} // namespace kvtide::core
