// SPDX-License-Identifier: Apache-2.0

/// @file
/// What would lie in one rank's GPU blocks and host slots, one number per
/// token. Copies happen when they end, as late as they may.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"

#include "core/layout.hpp"
#include "tests/support/token_model.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace kvtide::test {

class memory_shadow {
public:
  /// Compute writes tokens `from` to `to - 1` of a request.
  void write(const core::layout& shape, token_model& model, request_id id,
             const std::vector<std::vector<block_id>>& table, token_count from,
             token_count to) {
    for (group_id g = 0; g < table.size(); ++g) {
      const auto length = shape.groups[g].block_tokens;
      for (auto at = from; at < to; ++at) {
        const auto place = static_cast<std::size_t>(at / length);
        if (place < table[g].size() && table[g][place] != no_block)
          token(blocks_[table[g][place]], at % length)
            = model.content(id, g, at);
      }
    }
  }

  /// Moves the bytes of a job.
  /// @returns indices of rows whose content is not what their key says
  std::vector<std::size_t> copy(const core::layout& shape, token_model& model,
                                const job& work) {
    auto wrong = std::vector<std::size_t>{};
    for (std::size_t i = 0; i < work.rows.size(); ++i)
      if (!copy_row(shape, model, work, work.rows[i]))
        wrong.push_back(i);
    return wrong;
  }

private:
  using bytes = std::vector<std::uint64_t>;

  static std::uint64_t& token(bytes& of, token_count at) {
    const auto index = static_cast<std::size_t>(at);
    of.resize(std::max(of.size(), index + 1), 0);
    return of[index];
  }

  bool copy_row(const core::layout& shape, token_model& model, const job& work,
                const job_row& row) {
    const auto& group = shape.groups[row.key.group];
    auto right = true;
    for (std::size_t i = 0; i < row.blocks.size(); ++i) {
      if (row.blocks[i] == no_block)
        continue;
      for (token_count at = 0; at < group.block_tokens; ++at) {
        const auto inside
          = static_cast<token_count>(i) * group.block_tokens + at;
        auto& device = token(blocks_[row.blocks[i]], at);
        auto& host = token(slots_[row.slot], inside);
        (work.kind == job_kind::store ? host : device)
          = work.kind == job_kind::store ? device : host;
        right = right
             && device
                  == model.content(work.request, row.key.group,
                                   row.chunk * group.chunk_tokens + inside);
      }
    }
    return right;
  }

  std::map<block_id, bytes> blocks_;
  std::map<slot_id, bytes> slots_;
};

} // namespace kvtide::test
