// SPDX-License-Identifier: Apache-2.0

/// @file
/// The rule sets: what differs between the recorded behaviour of comparable
/// engines and ours, as one constant struct each. Every field is read in one
/// place. R-numbers: docs/rules.md.

#pragma once

#include "kvtide/options.hpp"

#include <cstdint>

namespace kvtide::core {

/// How many tokens a natural finish wants to store (R1).
enum class finish_frontier : std::uint8_t {
  /// All known tokens.
  known,
  /// All but the last sampled token, never less than the prompt.
  committed,
  /// As `committed`, but only what was computed while prefill is incomplete.
  computed_or_committed,
};

struct rules {
  finish_frontier natural_finish = finish_frontier::computed_or_committed; // R1
  bool error_stores_computed_only = true;       // R2
  bool preemption_clears_table = true;          // R3
  bool window_holes_hide_chunk = true;          // R4
  bool store_leading_part = true;               // R5
  bool arc_falls_back_to_t1 = true;             // R6
  bool bounded_deferral = true;                 // R7
  bool failures_roll_back = true;               // R8
  bool reset_keeps_running_slots = true;        // R9
  bool stale_clearing_covers_whole_table = true; // R9
  bool tolerate_bad_reports = true;             // R10
  bool hold_hits = true;                        // R11
  bool recency_per_admission = true;            // R12
  bool search_verifies_load = true;             // R13
  bool draft_search_goes_further = true;        // R14
  bool allocation_is_always_fresh = true;       // R15
  bool leave_one_token = true;                  // R16
  bool bound_store_jobs = true;                 // overload, hazard CNT-02
  bool drop_same_step_load_flush = true;        // S4
};

inline constexpr rules safe_rules{};

inline constexpr rules reference_rules{
  finish_frontier::known, false, false, false, false, false, false,
  false,                  false, false, false, false, false, false,
  false,                  false, false, false, false};

inline constexpr rules reference_committed_rules{
  finish_frontier::committed, false, false, false, false, false, false,
  false,                      false, false, false, false, false, false,
  false,                      false, false, false, false};

/// @returns the constant struct for `set`.
[[nodiscard]] constexpr const rules& rules_of(rule_set set) noexcept {
  switch (set) {
    case rule_set::reference:
      return reference_rules;
    case rule_set::reference_committed:
      return reference_committed_rules;
    case rule_set::safe:
      break;
  }
  return safe_rules;
}

} // namespace kvtide::core
