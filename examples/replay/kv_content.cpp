// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/kv_content.hpp"

#include <numeric>

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

template <class Visit>
void kv_content::visit_bytes(const token_text& text, const block_part& part,
                             Visit visit) {
  const auto token_bytes = shape_.token_bytes();
  text.visit_runs(
    part.index, part.first, part.last,
    [&](std::uint64_t run_seed, token_count first, token_count last) {
      const auto begin = static_cast<std::size_t>(first) * token_bytes;
      const auto end = static_cast<std::size_t>(last) * token_bytes;
      auto at = kv_plane{part.group, 0, 0, 0};
      for (const auto& arena : *arenas_) {
        for (at.layer = 0; at.layer < shape_.layers; ++at.layer)
          for (at.plane = 0; at.plane < geometry::planes; ++at.plane)
            visit(arena, arena.piece(part.block, at.layer, at.plane), begin,
                  end, plane_seed(run_seed, at), at);
        ++at.rank;
      }
    });
}

void kv_content::write(const token_text& text, const block_part& part) {
  visit_bytes(text, part,
              [](const kv_arena& arena, std::byte* piece, std::size_t begin,
                 std::size_t end, std::uint64_t seed, const kv_plane&) {
                if (auto* lane = arena.lane())
                  lane->write(piece, begin, end, seed);
                else
                  fill_pattern(piece, begin, end, seed);
              });
}

void kv_content::check(const token_text& text, const block_part& part,
                       request_id request, check_reason reason) {
  const auto row = static_cast<std::size_t>(reason);
  visit_bytes(
    text, part,
    [&](const kv_arena& arena, const std::byte* piece, std::size_t begin,
        std::size_t end, std::uint64_t seed, const kv_plane& at) {
      compared_[row] += end - begin;
      if (auto* lane = arena.lane())
        piece = lane->read(piece, begin, end);
      const auto wrong = find_difference(piece, begin, end, seed);
      if (wrong == end)
        return;
      ++mismatches_[row];
      if (first_)
        return;
      const auto token = static_cast<token_count>(wrong / shape_.token_bytes());
      first_ = mismatch{
        reason,
        request,
        part,
        at,
        static_cast<token_count>(part.index) * shape_.block_tokens() + token,
        wrong % shape_.token_bytes(),
        piece[wrong],
        pattern_byte(seed, wrong)};
    });
}

std::uint64_t kv_content::mismatches() const noexcept {
  return std::accumulate(mismatches_.begin(), mismatches_.end(),
                         std::uint64_t{0});
}

} // namespace kvtide::replay
