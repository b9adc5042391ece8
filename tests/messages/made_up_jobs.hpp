// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/job.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace kvtide {

inline bool operator==(const job_row& x, const job_row& y) {
  return x.key == y.key && x.slot == y.slot && x.chunk == y.chunk
      && x.blocks == y.blocks;
}

inline bool operator==(const job& x, const job& y) {
  return x.id == y.id && x.kind == y.kind && x.request == y.request
      && std::vector<job_row>(x.rows.begin(), x.rows.end())
           == std::vector<job_row>(y.rows.begin(), y.rows.end());
}

/// Bytes without any pattern.
inline prefix_hash some_hash(std::mt19937_64& rng, std::size_t size) {
  std::uint8_t bytes[prefix_hash::max_bytes];
  for (auto& x : bytes)
    x = static_cast<std::uint8_t>(rng());
  return {bytes, size};
}

/// Jobs that keep to no rule at all, or to most of them.
inline std::vector<job> wild_jobs(std::mt19937_64& rng, job_kind kind) {
  const auto up_to = [&rng](std::uint64_t most) { return rng() % (most + 1); };
  const auto number = [&](std::uint64_t near) {
    return up_to(2) > 0 ? near + up_to(3) : rng() >> up_to(63);
  };
  std::vector<job> result(up_to(6));
  job_id id = number(0);
  for (auto& x : result) {
    x.id = id;
    x.kind = kind;
    x.request = number(17);
    id = number(id);
    std::vector<job_row> rows(up_to(3) > 0 ? up_to(3) : up_to(40));
    const auto alike = up_to(3) > 0;
    const auto sizes = std::vector<std::size_t>{0, 1, 7, 8, 32, 64};
    auto size = sizes[up_to(5)];
    auto blocks = up_to(5);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!alike && up_to(1) > 0) {
        size = sizes[up_to(5)];
        blocks = up_to(1) > 0 ? up_to(5) : up_to(600);
      }
      auto& row = rows[i];
      row.key.hash = some_hash(rng, size);
      row.key.group = alike ? 1 : static_cast<group_id>(number(0));
      row.key.model = alike ? 99 : number(99);
      row.slot = static_cast<slot_id>(alike && up_to(9) > 0 ? 70 + i : rng());
      row.chunk = static_cast<std::uint32_t>(up_to(9) > 0 ? i : rng());
      row.blocks.resize(blocks);
      auto block = static_cast<block_id>(number(0));
      for (auto& y : row.blocks)
        y = up_to(9) > 0 ? block++ : static_cast<block_id>(number(0));
    }
    x.rows = std::move(rows);
  }
  return result;
}

} // namespace kvtide
