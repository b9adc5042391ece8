// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/host_pool.hpp"
#include "core/key_list.hpp"
#include "core/layout.hpp"
#include "core/rules.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kvtide::core {

/// What a search needs to know of a request.
struct search_input {
  /// One view per group in configured order.
  std::span<const key_view> keys;
  /// Tokens that the device already has.
  token_count local = 0;
  /// Tokens whose ids are known.
  token_count known = 0;
  /// Chunks that are being written count as absent, chunks that are being
  /// loaded do not defer (R7).
  bool ignore_pending = false;
  /// Nobody asks for a hit, so it is no use of any key (C10).
  bool uncounted = false;
};

/// Chunks `first` to `last - 1` of one group.
struct chunk_range {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Finds how much of a prompt the host pool has (C4). Looks every key
/// up at most once per search, and keeps its memory between searches.
/// Deterministic; not thread-safe.
class hit_search {
public:
  /// Keeps references to all arguments.
  /// @param watch_loading whether chunks that are being loaded defer
  hit_search(const layout& shape, const rules& rule, host_pool& pool,
             bool watch_loading);

  /// Forgets what earlier searches saw. `run` does it by itself.
  void begin(std::span<const key_view> keys);

  /// @returns tokens behind `local` that can be loaded, or none: ask again
  [[nodiscard]] std::optional<token_count> run(const search_input& in);

  /// Which chunks of `group` a load of `tokens` tokens behind `in.local` reads:
  /// those that overlap it and, in sliding groups, the window of the token that
  /// follows it.
  [[nodiscard]] chunk_range reads(const search_input& in, group_id group,
                                  token_count tokens) const;

  /// What the pool has for a key, looked up unless that happened since `begin`.
  /// @pre `keys` as given to `begin`, the pool did not change since,
  ///      `chunk < keys[group].size()`
  [[nodiscard]] std::optional<slot_id>
  slot_of(std::span<const key_view> keys, group_id group, std::size_t chunk);

  /// As `slot_of` for all chunks from `first` on; `host_pool::no_slot` for
  /// those that are absent. Valid until the next `begin`.
  /// @pre as for `slot_of`
  [[nodiscard]] std::span<const slot_id>
  slots_from(std::span<const key_view> keys, group_id group, std::size_t first);

private:
  /// Where one fixed-point search stands (C4).
  struct progress;

  /// How many chunks a scan found; none if it met a pending one.
  using scan_result = std::optional<std::size_t>;

  std::optional<token_count> fixed_point(const search_input& in,
                                         token_count limit);

  bool visit(const search_input& in, group_id group, progress& now);

  void look_ahead(const search_input& in, group_id group, chunk_range span);

  host_pool::presence look_at(const search_input& in, group_id group,
                              std::size_t chunk);

  scan_result prefix_scan(const search_input& in, group_id group,
                          chunk_range span);

  scan_result window_scan(const search_input& in, group_id group,
                          chunk_range span, std::size_t width);

  /// What stands against a hit: where the lowest chunk begins that the load
  /// cannot read, and whether it would read one that is being written.
  struct fault {
    token_count tokens = all_tokens;
    bool pending = false;
  };

  fault find_fault(const search_input& in, token_count tokens);

  bool loading_defers(const search_input& in, token_count tokens);

  const layout& shape_;
  const rules& rule_;
  host_pool& pool_;
  bool watch_loading_;
  /// Per group and chunk: slot, or one of two special numbers.
  std::vector<std::vector<slot_id>> memo_;
  /// Per group: its draft chunk was dropped already.
  std::vector<bool> popped_;
};

} // namespace kvtide::core
