// SPDX-License-Identifier: Apache-2.0

/// @file
/// What many tests of whole runs begin with.

#pragma once

#include "tests/support/test_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace kvtide::test {

// Requests; plans show them by these letters.
inline constexpr request_id A = 'A';
inline constexpr request_id B = 'B';
inline constexpr request_id C = 'C';
inline constexpr request_id D = 'D';
inline constexpr request_id E = 'E';
inline constexpr request_id F = 'F';
inline constexpr request_id G = 'G';
inline constexpr request_id P = 'P';
inline constexpr request_id Q = 'Q';
inline constexpr request_id R = 'R';
inline constexpr request_id X = 'X';
inline constexpr request_id Z = 'Z';

[[nodiscard]] inline options with_ranks(std::uint32_t ranks) {
  auto out = plain_options();
  out.ranks = ranks;
  return out;
}

/// A full-attention group, and one with a window of so many tokens.
[[nodiscard]] inline options full_and_sliding(std::int32_t window,
                                              rule_set rules = rule_set::safe) {
  auto out = plain_options(rules);
  out.groups.resize(2);
  out.groups[1].tokens_per_block = 4;
  out.groups[1].sliding_window_tokens = window;
  return out;
}

/// Runs a prompt of whole chunks in one step, stores all of it in the host pool
/// and ends the request.
inline void warm(test_system& sys, request_id id, const block_lists& blocks,
                 token_count tokens, const add_with& how = {}) {
  const auto before = sys.jobs();
  sys.add(id, tokens, how);
  (void)sys.step({{{id, tokens, blocks}}, {}});
  (void)sys.finish(id, finish_reason::abort);
  (void)sys.step();
  for (auto job : sys.jobs())
    if (std::find(before.begin(), before.end(), job) == before.end())
      sys.done(job);
}

/// FIN-04 up to the finish: the outputs of R's last two steps come after both
/// were planned.
inline void run_to_the_end(test_system& sys) {
  sys.add(R, 7);
  ASSERT_EQ(sys.step({{{R, 7, {{1, 2}}}}, {}}), "S0{R#0<-1}");
  ASSERT_EQ(sys.step({{{R, 1, {}}}, {}}), "-");
  sys.out(R, 2);
  ASSERT_EQ(sys.known(R), 9);
  ASSERT_TRUE(sys.finish(R, finish_reason::length).empty());
}

} // namespace kvtide::test
