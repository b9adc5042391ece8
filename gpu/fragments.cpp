// SPDX-License-Identifier: Apache-2.0

#include "gpu/fragments.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>

namespace kvtide::gpu {

std::uint64_t total_bytes(const std::vector<fragment>& fragments) noexcept {
  std::uint64_t sum = 0;
  for (const auto& part : fragments)
    sum += part.bytes;
  return sum;
}

std::uint64_t bytes_before_row(const std::vector<fragment>& fragments,
                               std::uint32_t row) noexcept {
  std::uint64_t sum = 0;
  for (const auto& part : fragments) {
    if (part.row >= row)
      break;
    sum += part.bytes;
  }
  return sum;
}

void copy_range(const std::vector<fragment>& fragments, std::uint64_t first,
                std::uint64_t last) noexcept {
  std::uint64_t begin = 0;
  for (const auto& part : fragments) {
    if (begin >= last)
      return;
    const auto end = begin + part.bytes;
    const auto from = std::max(begin, first);
    const auto to = std::min(end, last);
    if (from < to)
      std::memcpy(static_cast<std::byte*>(part.dst) + (from - begin),
                  static_cast<const std::byte*>(part.src) + (from - begin),
                  to - from);
    begin = end;
  }
}

nanoseconds_t timed_copy(const std::vector<fragment>& fragments,
                         std::uint64_t first, std::uint64_t last) noexcept {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  copy_range(fragments, first, last);
  return std::chrono::nanoseconds{clock::now() - start}.count();
}

void merge_adjacent(
  std::vector<fragment>& fragments, job_kind kind,
  const std::function<bool(const void*, std::uint64_t)>& in_one_piece) {
  if (fragments.empty())
    return;
  auto last = fragments.begin();
  for (auto next = last + 1; next != fragments.end(); ++next) {
    const auto bytes = last->bytes + next->bytes;
    const auto* host = kind == job_kind::store ? last->dst : last->src;
    if (last->tensor == next->tensor
        && static_cast<std::byte*>(last->dst) + last->bytes == next->dst
        && static_cast<const std::byte*>(last->src) + last->bytes == next->src
        && in_one_piece(host, bytes))
      last->bytes = bytes;
    else
      *++last = *next;
  }
  fragments.erase(last + 1, fragments.end());
}

void fragment_cursor::take(std::uint64_t bytes, std::size_t fragments,
                           std::vector<fragment>& out) {
  const auto most = out.size() + fragments;
  while (bytes > 0 && !done() && out.size() < most) {
    const auto& from = fragments_[next_];
    const auto part = std::min(bytes, from.bytes - taken_);
    if (part > 0)
      out.push_back({static_cast<std::byte*>(from.dst) + taken_,
                     static_cast<const std::byte*>(from.src) + taken_, part,
                     from.row, from.tensor});
    taken_ += part;
    bytes -= part;
    if (taken_ == from.bytes) {
      ++next_;
      taken_ = 0;
    }
  }
}

nanoseconds_t copy_time(std::uint64_t bytes, nanoseconds_t latency,
                        std::uint64_t bytes_per_second) noexcept {
  if (bytes_per_second == 0)
    return latency;
  __extension__ using wide = unsigned __int128;
  const auto span
    = (wide{bytes} * 1'000'000'000u + bytes_per_second - 1) / bytes_per_second;
  if (span >= static_cast<wide>(never))
    return never;
  return later_by(latency, static_cast<nanoseconds_t>(span));
}

} // namespace kvtide::gpu
