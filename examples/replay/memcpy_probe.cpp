// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/memcpy_probe.hpp"

#include "examples/replay/mix.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

namespace kvtide::replay {

namespace {

// More than most caches hold, so that it is memory that is measured.
constexpr std::size_t side_bytes = 32u << 20;
// The first one only warms up.
constexpr int rounds = 4;

std::vector<std::uint32_t> shuffled(std::size_t count) {
  auto res = std::vector<std::uint32_t>(count);
  std::iota(res.begin(), res.end(), 0u);
  auto chance = dice{1, 1};
  for (auto left = count; left > 1; --left)
    std::swap(res[left - 1], res[chance.roll(left)]);
  return res;
}

} // namespace

memcpy_probe::memcpy_probe(const geometry& shape, std::size_t blocks_per_chunk)
  : fragment_bytes_(std::min(shape.fragment_bytes(), side_bytes)),
    tensors_(std::min(shape.tensors(), side_bytes / fragment_bytes_)) {
  const auto blocks = side_bytes / fragment_bytes_ / tensors_;
  blocks_per_chunk_ = std::min(blocks_per_chunk, blocks);
  chunks_ = blocks / blocks_per_chunk_;
}

void memcpy_probe::run() {
  const auto chunks = shuffled(chunks_);
  const auto tensor_bytes = fragment_bytes_ * blocks_per_chunk_ * chunks_;
  // Values, so that both sides have pages of their own by now.
  const auto from = std::vector<std::byte>(side_bytes, std::byte{1});
  auto to = std::vector<std::byte>(side_bytes, std::byte{2});
  for (auto round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    auto* next = to.data();
    for (const auto chunk : chunks) {
      const auto* block
        = from.data() + chunk * blocks_per_chunk_ * fragment_bytes_;
      for (auto left = blocks_per_chunk_; left > 0; --left) {
        for (auto tensor = std::size_t{0}; tensor < tensors_; ++tensor) {
          std::memcpy(next, block + tensor * tensor_bytes, fragment_bytes_);
          next += fragment_bytes_;
        }
        block += fragment_bytes_;
      }
    }
    const auto spent
      = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
    // A compiler may leave out what nobody reads.
    if (round > 0 && *(next - 1) == from.front())
      rounds_.push_back(static_cast<double>(next - to.data()) / spent.count());
  }
}

double memcpy_probe::bytes_per_second() const {
  if (rounds_.empty())
    return 0;
  auto sorted = rounds_;
  const auto middle
    = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

} // namespace kvtide::replay
