// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/kv_content.hpp"

#include <numeric>
#include <tuple>
#include <utility>

namespace kvtide::replay {

const char* to_word(check_reason reason) noexcept {
  switch (reason) {
    case check_reason::loaded:
      return "loaded";
    case check_reason::found_on_device:
      return "found_on_device";
    case check_reason::finished:
      break;
  }
  return "finished";
}

std::string to_string(const mismatch& what) {
  const auto number = [](auto value) { return std::to_string(value); };
  const auto& at = what.where;
  return "request " + number(what.request) + ", group " + number(at.group)
       + ", block " + number(what.part.block) + " (number "
       + number(what.part.index) + " of the request), layer " + number(at.layer)
       + ", plane " + (at.plane == 0 ? "K" : "V") + ", rank " + number(at.rank)
       + ", token " + number(what.token) + ", byte " + number(what.byte)
       + ": got " + number(std::to_integer<int>(what.got)) + ", want "
       + number(std::to_integer<int>(what.want)) + " (" + to_word(what.reason)
       + ")";
}

// -- counting -----------------------------------------------------------------

std::uint64_t check_tally::all_mismatches() const noexcept {
  return std::accumulate(mismatches.begin(), mismatches.end(),
                         std::uint64_t{0});
}

void check_tally::add(const check_tally& other) {
  for (auto index = std::size_t{0}; index < check_reasons; ++index) {
    compared_bytes[index] += other.compared_bytes[index];
    mismatches[index] += other.mismatches[index];
  }
  const auto place = [](const mismatch& x) {
    return std::tuple{x.number, x.where.rank};
  };
  if (other.first && (!first || place(*other.first) < place(*first)))
    first = other.first;
}

// -- bytes --------------------------------------------------------------------

template <class Visit>
void kv_content::visit_bytes(const kv_span& span, Visit visit) {
  const auto& part = span.part;
  const auto token_bytes = shape_.token_bytes();
  const auto begin = static_cast<std::size_t>(part.first) * token_bytes;
  const auto end = static_cast<std::size_t>(part.last) * token_bytes;
  auto at = kv_plane{part.group, 0, 0, rank_};
  for (at.layer = 0; at.layer < shape_.layers; ++at.layer)
    for (at.plane = 0; at.plane < geometry::planes; ++at.plane)
      visit(arena_->piece(part.block, at.layer, at.plane), begin, end,
            plane_seed(span.seed, at), at);
}

void kv_content::write(const kv_span& span) {
  auto* const lane = arena_->lane();
  visit_bytes(span, [lane](std::byte* piece, std::size_t begin, std::size_t end,
                           std::uint64_t seed, const kv_plane&) {
    if (lane != nullptr)
      lane->write(piece, begin, end, seed);
    else
      fill_pattern(piece, begin, end, seed);
  });
}

void kv_content::check(const kv_check& what) {
  auto* const lane = arena_->lane();
  const auto row = static_cast<std::size_t>(what.reason);
  const auto& part = what.span.part;
  visit_bytes(what.span, [&](const std::byte* piece, std::size_t begin,
                             std::size_t end, std::uint64_t seed,
                             const kv_plane& at) {
    tally_.compared_bytes[row] += end - begin;
    if (lane != nullptr)
      piece = lane->read(piece, begin, end);
    const auto wrong = find_difference(piece, begin, end, seed);
    if (wrong == end)
      return;
    ++tally_.mismatches[row];
    if (tally_.first)
      return;
    const auto token = static_cast<token_count>(wrong / shape_.token_bytes());
    tally_.first = mismatch{
      what.reason,
      what.request,
      part,
      at,
      static_cast<token_count>(part.index) * shape_.block_tokens() + token,
      wrong % shape_.token_bytes(),
      piece[wrong],
      pattern_byte(seed, wrong),
      what.number};
  });
}

check_tally kv_content::take_tally() {
  return std::exchange(tally_, {});
}

} // namespace kvtide::replay
