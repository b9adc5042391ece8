// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/pattern.hpp"

#include <algorithm>
#include <cstring>

namespace kvtide::replay {

namespace {

constexpr std::size_t word_bytes = 8;

// Calls `visit(offset, size, word, skip)` for each word that `[first, last)`
// touches: `size` bytes at `offset` are bytes `skip` and up of `word`.
// Stops when `visit` answers false.
template <class Visit>
void visit_words(std::size_t first, std::size_t last, std::uint64_t seed,
                 Visit visit) {
  while (first < last) {
    const auto index = first / word_bytes;
    const auto skip = first % word_bytes;
    const auto size = std::min(word_bytes - skip, last - first);
    if (!visit(first, size, pattern_word(seed, index), skip))
      return;
    first += size;
  }
}

} // namespace

void fill_pattern(std::byte* piece, std::size_t first, std::size_t last,
                  std::uint64_t seed) noexcept {
  if (first % word_bytes == 0 && last % word_bytes == 0) {
    for (auto index = first / word_bytes; index < last / word_bytes; ++index) {
      const auto word = pattern_word(seed, index);
      std::memcpy(piece + index * word_bytes, &word, word_bytes);
    }
    return;
  }
  visit_words(first, last, seed,
              [piece](std::size_t offset, std::size_t size, std::uint64_t word,
                      std::size_t skip) {
                std::byte bytes[word_bytes];
                std::memcpy(bytes, &word, word_bytes);
                std::memcpy(piece + offset, bytes + skip, size);
                return true;
              });
}

std::size_t find_difference(const std::byte* piece, std::size_t first,
                            std::size_t last, std::uint64_t seed) noexcept {
  if (first % word_bytes == 0 && last % word_bytes == 0) {
    auto different = std::uint64_t{0};
    for (auto index = first / word_bytes; index < last / word_bytes; ++index) {
      auto word = std::uint64_t{0};
      std::memcpy(&word, piece + index * word_bytes, word_bytes);
      different |= word ^ pattern_word(seed, index);
    }
    if (different == 0)
      return last;
  }
  auto res = last;
  visit_words(first, last, seed,
              [piece, &res](std::size_t offset, std::size_t size,
                            std::uint64_t word, std::size_t skip) {
                std::byte bytes[word_bytes];
                std::memcpy(bytes, &word, word_bytes);
                const std::byte* begin = bytes + skip;
                const auto found
                  = std::mismatch(begin, begin + size, piece + offset);
                res = found.first == begin + size
                      ? res
                      : offset + static_cast<std::size_t>(found.first - begin);
                return found.first == begin + size;
              });
  return res;
}

std::byte pattern_byte(std::uint64_t seed, std::size_t offset) noexcept {
  const auto word = pattern_word(seed, offset / word_bytes);
  std::byte bytes[word_bytes];
  std::memcpy(bytes, &word, word_bytes);
  return bytes[offset % word_bytes];
}

} // namespace kvtide::replay
