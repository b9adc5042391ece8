// SPDX-License-Identifier: Apache-2.0

/// @file
/// The rule sets: what differs between the recorded behaviour of comparable
/// engines and ours, as one constant struct each. A field is read where its
/// rule decides something; docs/rules.md names these places by the numbers
/// below.

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

/// Without a word: as recorded. R10 is no field, as bad reports are counted and
/// ignored under every rule set.
struct rules {
  finish_frontier natural_finish = finish_frontier::known; // R1
  bool error_stores_computed_only = false;                 // R2
  bool preemption_clears_table = false;                    // R3
  bool window_holes_hide_chunk = false;                    // R4
  bool store_leading_part = false;                         // R5
  bool arc_falls_back_to_t1 = false;                       // R6
  bool bounded_deferral = false;                           // R7
  bool failures_roll_back = false;                         // R8
  bool reset_keeps_running_slots = false;                  // R9
  bool stale_clearing_covers_whole_table = false;          // R9
  bool hold_hits = false;                                  // R11
  bool recency_per_admission = false;                      // R12
  bool search_verifies_load = false;                       // R13
  bool draft_search_goes_further = false;                  // R14
  bool allocation_is_always_fresh = false;                 // R15
  bool leave_one_token = false;                            // R16
  bool bound_store_jobs = false;                           // CNT-02: overload
  bool drop_same_step_load_flush = false;                  // S4
};

inline constexpr rules reference_rules{};

inline constexpr rules reference_committed_rules{.natural_finish
                                                 = finish_frontier::committed};

inline constexpr rules safe_rules{.natural_finish
                                  = finish_frontier::computed_or_committed,
                                  .error_stores_computed_only = true,
                                  .preemption_clears_table = true,
                                  .window_holes_hide_chunk = true,
                                  .store_leading_part = true,
                                  .arc_falls_back_to_t1 = true,
                                  .bounded_deferral = true,
                                  .failures_roll_back = true,
                                  .reset_keeps_running_slots = true,
                                  .stale_clearing_covers_whole_table = true,
                                  .hold_hits = true,
                                  .recency_per_admission = true,
                                  .search_verifies_load = true,
                                  .draft_search_goes_further = true,
                                  .allocation_is_always_fresh = true,
                                  .leave_one_token = true,
                                  .bound_store_jobs = true,
                                  .drop_same_step_load_flush = true};

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
