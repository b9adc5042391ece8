// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/directory.hpp"
#include "kvtide/ids.hpp"

#include <map>
#include <string>
#include <vector>

namespace kvtide::core {

/// Where a router sends a prompt. Whoever has most of it computes least; but a
/// beginning that nearly all prompts share must not draw them all to the
/// replicas that have it. So a small part is not followed: such a prompt goes
/// to whoever was given least to compute. Deterministic; not thread-safe.
class replica_chooser {
public:
  /// @param least_share see `router_options`
  explicit replica_chooser(double least_share);

  /// Remembers the choice.
  /// @param all everyone who takes part
  /// @param most who of them has most, as the directory says
  /// @param prompt its tokens
  /// @returns one of `all`; null if there is none
  const replica_holding* choose(const std::vector<replica_holding>& all,
                                const std::string& most, token_count prompt);

private:
  /// Those who take part, and nobody else.
  void meet(const std::vector<replica_holding>& all);

  double least_share_;
  /// Tokens that each of them was given to compute.
  std::map<std::string, token_count> given_;
};

} // namespace kvtide::core
