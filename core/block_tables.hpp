// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/short_list.hpp"
#include "core/table_update.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace kvtide::core {

/// A block table, or what is left of it behind its first blocks.
struct table_view {
  /// Index in the table of the first block that is left.
  std::size_t first = 0;
  std::span<const block_id> blocks;

  /// Of the whole table, in blocks.
  [[nodiscard]] std::size_t size() const noexcept {
    return first + blocks.size();
  }
};

/// The block tables of one request, one per group. Plain bookkeeping, no
/// threads.
class block_tables {
public:
  explicit block_tables(std::size_t groups) : tables_(groups) {
    // nop
  }

  void empty();

  void append(group_id group, std::span<const block_id> blocks);

  /// The block at `position` was handed to somebody else.
  void clear(group_id group, std::size_t position);

  /// All that a request missed.
  void apply(const table_update& update);

  /// Forgets the blocks before `position`, which nobody will ask for.
  void forget_before(group_id group, std::size_t position);

  [[nodiscard]] table_view view(group_id group) const noexcept {
    return {tables_[group].first, tables_[group].blocks};
  }

private:
  struct remaining {
    /// Index of `blocks.front()`.
    std::size_t first = 0;
    std::vector<block_id> blocks;
  };

  per_group<remaining> tables_;
};

} // namespace kvtide::core
