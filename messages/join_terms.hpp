// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the scheduler and a rank of another process have to agree on before the
/// first plan (AGG-04).

#pragma once

#include "kvtide/options.hpp"
#include "kvtide/result.hpp"

#include "messages/join.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide {

struct join_terms {
  rank_id rank = 0;
  /// A random number per life of the process that owns the rank's memory: its
  /// incarnation, before the door has counted it.
  std::uint64_t life = 0;

  // The rest is the same on both sides, or the rank is refused.
  std::uint32_t ranks = 1;
  std::vector<group_options> groups;
  std::int32_t blocks_per_chunk = 0;
  std::int32_t tokens_per_hash = 0;
  std::string model_fingerprint;
  rule_set rules = rule_set::safe;
  plan_delivery delivery = plan_delivery::direct;
  /// Time moves by `tick` only.
  bool virtual_time = false;
};

/// What `opts` say.
[[nodiscard]] join_terms terms_of(const options& opts, rank_id rank,
                                  std::uint64_t life);

/// The same terms give the same bytes.
[[nodiscard]] std::string encode_terms(const join_terms& terms);

/// Reads what `encode_terms` wrote. Memory use is bounded by `bytes`.
/// @returns `ec::invalid_argument` with a sentence if they are damaged.
[[nodiscard]] result<join_terms> decode_terms(const std::string& bytes);

/// What keeps a rank with terms `theirs` from serving a scheduler with terms
/// `ours`: a sentence that names the field and both values. `ec::none` if they
/// fit; `rank` and `life` are not looked at.
[[nodiscard]] error fault_of(const join_terms& ours, const join_terms& theirs);

/// Why nobody can be spoken to behind the door that knocks: a sentence.
/// `ec::none` if somebody can.
[[nodiscard]] error fault_of(const msg::knock& x);

} // namespace kvtide
