// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "examples/replay/mix.hpp"
#include "examples/replay/trace_reader.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kvtide::replay {

/// The text of one request as far as a cache cares: which tokens equal those of
/// another request. No token ids exist; a stretch of tokens has an identity (a
/// prefix id of the trace, or a number that only this request has), and a token
/// is known by what lies before it, that identity and its position.
///
/// Two texts that share a prefix id but end at different places in it share the
/// whole hashes that both cover, and no more.
class token_text {
public:
  /// Tokens from `begin` on that no other text has, up to the next such part.
  struct own_part {
    token_count begin = 0;
    std::uint64_t identity = 0;
  };

  /// @param prefix_ids Identities of the tokens before the first own part; must
  ///                   outlive this object.
  /// @param parts Ascending, not empty; the last one has no end.
  /// @param tokens_per_hash At least 1.
  token_text(const std::vector<std::uint64_t>& prefix_ids,
             std::vector<own_part> parts, token_count tokens_per_hash)
    : prefix_ids_(&prefix_ids), parts_(std::move(parts)),
      tokens_per_hash_(tokens_per_hash) {
    assert(!parts_.empty() && tokens_per_hash > 0);
  }

  [[nodiscard]] const std::vector<std::uint64_t>& prefix_ids() const noexcept {
    return *prefix_ids_;
  }

  [[nodiscard]] const std::vector<own_part>& parts() const noexcept {
    return parts_;
  }

  /// Hash of the first `(index + 1) * tokens_per_hash` tokens.
  [[nodiscard]] std::uint64_t hash(std::size_t index) const;

  /// Splits the tokens `[first, last)` of a block of `tokens_per_hash` tokens,
  /// counted from the block's start, into runs of one identity, and calls
  /// `visit(seed, begin, end)` for each. The seed depends on every token before
  /// the run and on the run's identity, not on what follows.
  template <class Visit>
  void visit_runs(std::size_t block, token_count first, token_count last,
                  Visit visit) const {
    const auto start = static_cast<token_count>(block) * tokens_per_hash_;
    auto state = block == 0 ? root : hash(block - 1);
    for (auto at = token_count{0}; at < last;) {
      const auto end
        = std::min(tokens_per_hash_, end_of_run(start + at) - start);
      const auto seed = mix(state, identity_of(start + at));
      if (end > first)
        visit(seed, std::max(at, first), std::min(end, last));
      state = mix(seed, static_cast<std::uint64_t>(end - at));
      at = end;
    }
  }

private:
  static constexpr std::uint64_t root = 0x6b76746964650001u;

  [[nodiscard]] std::uint64_t identity_of(token_count position) const;
  /// First position behind `position` with another identity.
  [[nodiscard]] token_count end_of_run(token_count position) const;

  const std::vector<std::uint64_t>* prefix_ids_;
  std::vector<own_part> parts_;
  token_count tokens_per_hash_;
  // Grows as hashes are asked for.
  mutable std::vector<std::uint64_t> hashes_;
};

} // namespace kvtide::replay
