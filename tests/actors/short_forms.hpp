// SPDX-License-Identifier: Apache-2.0

/// @file
/// What many tests of whole runs begin with.

#pragma once

#include "tests/support/test_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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
  (void)sys.finish(R, finish_reason::length);
}

} // namespace kvtide::test
