// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/block_tables.hpp"
#include "core/layout.hpp"
#include "core/request_keys.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::core {

struct group_spec {
  std::int32_t tokens_per_block = 4;
  std::int32_t window = 0;
  bool draft = false;
};

/// Four tokens per hash.
inline std::shared_ptr<const layout>
shape_of(const std::vector<group_spec>& groups,
         std::int32_t blocks_per_chunk = 1) {
  auto opts = options{};
  opts.groups.clear();
  for (const auto& x : groups)
    opts.groups.push_back({x.tokens_per_block, x.window, x.draft});
  opts.blocks_per_chunk = blocks_per_chunk;
  opts.tokens_per_hash = 4;
  return std::make_shared<const layout>(make_layout(opts).value());
}

inline prefix_hash hash(std::uint32_t number) {
  return {&number, sizeof(number)};
}

inline std::vector<prefix_hash> hashes(std::uint32_t from, std::uint32_t to) {
  auto out = std::vector<prefix_hash>{};
  for (auto x = from; x < to; ++x)
    out.push_back(hash(x));
  return out;
}

/// The keys of a request whose hashes are numbers from 0 on.
inline request_keys keys_up_to(std::shared_ptr<const layout> shape,
                               std::uint32_t count) {
  auto out = request_keys{std::move(shape)};
  out.append(hashes(0, count), {}, {});
  return out;
}

/// "chunk/group block block ..."
inline std::string row_text(std::size_t chunk, group_id group,
                            const std::vector<block_id>& blocks) {
  auto out = std::to_string(chunk) + "/" + std::to_string(group);
  for (auto block : blocks)
    out.append(1, ' ').append(std::to_string(block));
  return out;
}

} // namespace kvtide::core
