// SPDX-License-Identifier: Apache-2.0

/// @file
/// The states that a request can be in when something happens to it.

#pragma once

#include "kvtide/calls.hpp"

#include "tests/actors/short_forms.hpp"
#include "tests/support/test_system.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace kvtide::test {

/// Under `plain_options`, in a pool with room for everything. The request is R.
struct request_state {
  const char* name;
  void (*reach)(test_system& sys);
  /// Chunks that are stored in all, P's included, if R ends here, for whatever
  /// reason.
  std::uint64_t stored;
  /// A load of blocks 4 and 5 is in flight.
  bool loads;
};

/// P's two chunks are in the host pool, and R, with one more, was told so.
inline void promise_two_chunks(test_system& sys) {
  warm(sys, 'P', {{1, 2}}, 8);
  sys.add('R', 12, {'P', 8});
  EXPECT_EQ(sys.lookup('R'), 8);
}

inline constexpr request_state request_states[] = {
  {"queued",
   [](test_system& sys) {
     sys.add('R', 12);
     EXPECT_EQ(sys.lookup('R'), 0);
   },
   0, false},
  {"deferred",
   [](test_system& sys) {
     sys.add('P', 8);
     EXPECT_EQ(sys.step({{{'P', 8, {{1, 2}}}}, {}}), "S0{P#0<-1,P#1<-2}");
     EXPECT_TRUE(sys.finish('P', finish_reason::abort).empty());
     EXPECT_EQ(sys.step(), "-");
     sys.add('R', 12, {'P', 8});
     EXPECT_EQ(sys.lookup('R'), defer);
   },
   2, false},
  {"promised", promise_two_chunks, 2, false},
  {"allocated",
   [](test_system& sys) {
     promise_two_chunks(sys);
     sys.alloc('R', {{4, 5}}, 8);
   },
   2, true},
  {"loading",
   [](test_system& sys) {
     promise_two_chunks(sys);
     sys.alloc('R', {{4, 5}}, 8);
     EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
   },
   2, true},
  {"recomputing",
   [](test_system& sys) {
     promise_two_chunks(sys);
     sys.alloc('R', {{4, 5}}, 8);
     EXPECT_EQ(sys.step(), "L1{R#0->4,R#1->5}");
     sys.fail(1);
   },
   2, false},
  {"prefilling",
   [](test_system& sys) {
     sys.add('R', 12);
     EXPECT_EQ(sys.step({{{'R', 6, {{1, 2, 3}}}}, {}}), "S0{R#0<-1}");
   },
   1, false},
  // The last sampled token ends a chunk, and its KV was never written.
  {"decoding",
   [](test_system& sys) {
     sys.add('R', 7);
     EXPECT_EQ(sys.step({{{'R', 7, {{1, 2}}}}, {}}), "S0{R#0<-1}");
     sys.out('R', 1);
   },
   1, false},
  // The last chunk is computed, which was not known when its step was planned.
  {"decoding asynchronously",
   [](test_system& sys) {
     sys.add('R', 7);
     EXPECT_EQ(sys.step({{{'R', 7, {{1, 2}}}}, {}}), "S0{R#0<-1}");
     EXPECT_EQ(sys.step({{{'R', 1, {}}}, {}}), "-");
     sys.out('R', 2);
   },
   2, false},
  {"preempted",
   [](test_system& sys) {
     sys.add('R', 9);
     EXPECT_EQ(sys.step({{{'R', 9, {{1, 2, 3}}}}, {}}), "S0{R#0<-1,R#1<-2}");
     EXPECT_EQ(sys.step({{}, {'R'}}), "flush{0}");
   },
   2, false},
};

/// The last one is none that this version knows.
inline constexpr finish_reason every_reason[]
  = {finish_reason::stop,           finish_reason::length,
     finish_reason::repetition,     finish_reason::abort,
     finish_reason::error,          finish_reason::ignored,
     static_cast<finish_reason>(99)};

} // namespace kvtide::test
