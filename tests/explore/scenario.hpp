// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::explore {

/// A small life of an engine: what it serves and what may go wrong. All else is
/// chosen while it runs.
struct scenario {
  std::string name;
  /// One sentence for `--list`.
  std::string about;

  /// See copy_way.hpp: "desk", that of another way, or `cuda_in_turn`.
  std::string device = "desk";

  options opts;
  /// Host slots of each rank.
  std::uint64_t slots = 64;
  /// Blocks of the device, zero included.
  std::uint32_t blocks = 40;

  std::uint32_t requests = 4;
  /// That are alive at the same time.
  std::uint32_t alive = 3;
  token_count prompt = 9;
  token_count outputs = 3;
  /// Tokens that each request shares with the one before it.
  token_count shared = 8;
  /// Most tokens of one request in one step.
  token_count budget = 64;

  /// A step is planned before the results of the last one are known.
  bool async = false;
  /// Fences are events of the compute stream, as with CUDA.
  bool stream_fences = false;
  /// Every rank lives in another process.
  bool remote = false;
  /// No step follows the last finish.
  bool stops_at_once = false;

  // How often each may happen in one run.
  std::uint32_t aborts = 0;
  std::uint32_t preemptions = 0;
  std::uint32_t resets = 0;
  std::uint32_t edits = 0;
  std::uint32_t copy_failures = 0;
  std::uint32_t deadlines = 0;
  std::uint32_t rank_deaths = 0;
  /// The connection to a rank ends; each side notices at a time of its own, and
  /// the same life of the rank comes back.
  std::uint32_t cuts = 0;
  /// The engine gives its memory back for a while.
  std::uint32_t sleeps = 0;
  /// Questions at any moment; with one at least, lookups are explained, too.
  std::uint32_t explains = 0;

  /// Chunks may be lost by something that is not listed above.
  bool may_lose = false;

  /// Nothing is lost, so that every whole chunk must be found at the end (S2).
  [[nodiscard]] bool keeps_all() const noexcept {
    return !may_lose
        && aborts + resets + edits + copy_failures + deadlines + rank_deaths
               + cuts + sleeps
             == 0
        && opts.groups.size() == 1 && slots >= 64;
  }
};

[[nodiscard]] const std::vector<scenario>& all_scenarios();

/// @returns null if there is none of that name
[[nodiscard]] const scenario* find_scenario(const std::string& name);

} // namespace kvtide::explore
