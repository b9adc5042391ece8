// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/promise.hpp"

#include <string>

namespace kvtide::bench {

namespace {

constexpr auto promised = 0.9;
constexpr std::uint64_t fragment_bytes = 64u << 10;
constexpr std::uint64_t fragments = 1'024;

} // namespace

error check_host_promise(const results& what) {
  auto seen = false;
  for (const auto& row : what.copies) {
    if (row.fragment_bytes != fragment_bytes || row.fragments != fragments
        || row.jobs != 1 || row.where_to == direction::both)
      continue;
    seen = true;
    if (row.by_each.p50 >= promised)
      continue;
    auto ratio = std::to_string(row.by_each.p50);
    return {ec::timeout, std::string{"the host engine has "} + ratio
                           + " of the rate of memcpy (" + name_of(row.where_to)
                           + ", 1024 x 64 KiB), 0.9 is promised"};
  }
  if (!seen)
    return {ec::invalid_argument,
            "--check needs a store or a load of fragments of 64K with "
            "--counts fill, --batch 64M and --jobs 1"};
  return {};
}

} // namespace kvtide::bench
