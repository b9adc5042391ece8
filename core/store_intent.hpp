// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/finish_reason.hpp"
#include "kvtide/ids.hpp"

#include "core/rules.hpp"

#include <optional>

namespace kvtide::core {

/// What the engine says about a request's progress, and what its owner allows.
struct store_wish {
  token_count prompt = 0;
  token_count known = 0;
  token_count computed = 0;
  /// Tokens that the step at hand computes.
  token_count scheduled = 0;
  token_count cap = no_cap;
  /// How the request ended; none while it runs.
  std::optional<finish_reason> ending;
  bool prompt_only = false;
  bool no_store = false;
};

/// The intent: how many leading tokens one wants to store (C8, R1, R2). Depends
/// on how the request ended and on its caps, and on nothing else: whether the
/// tokens can be stored is `storable_chunks`' business.
[[nodiscard]] token_count wanted_tokens(const store_wish& wish,
                                        const rules& rule) noexcept;

} // namespace kvtide::core
