// SPDX-License-Identifier: Apache-2.0

/// @file
/// What is left when nothing can happen any more.

#include "tests/explore/world.hpp"

namespace kvtide::explore {

void world::check_rest() {
  ending_ = true;
  memory_->check_rest();
  check_leftovers();
  if (found())
    return;
  // It still serves, and what it has is right on all ranks.
  engine_->add_probes();
  while (!found() && plain_step())
    ; // nop
  if (!found() && !engine_->over())
    findings_.report("life", "a request that came after all others is stuck");
  if (!found())
    check_leftovers();
}

void world::check_leftovers() {
  engine_->call_stats();
  run_quietly();
  if (found())
    return;
  if (!past_.counted)
    return findings_.report("life", "the scheduler does not answer");
  const auto& x = *past_.counted;
  const auto check = [this](std::uint64_t left, const char* what) {
    if (left > 0)
      findings_.report("rest",
                       std::to_string(left) + " " + what + " are left over");
  };
  if (x.lost_requests + x.lost_caches > 0 && doomed_.empty())
    findings_.report("life", "a request or the cache manager died");
  check(x.tracked_requests, "tracked requests");
  check(x.jobs_in_flight, "jobs");
  check(x.quarantined_slots, "quarantined slots");
  check(x.pinned_slots, "pinned slots");
  check(x.held_slots, "held slots");
  check(x.writing_slots, "slots in writing");
  check(x.watched_blocks, "watched blocks");
  check(x.sliding_entries, "entries of the sliding index");
  if (deaths_ == 0 && !repeats_a_report())
    check(x.order_errors, "order errors");
  if (!engine_->holds_nothing())
    findings_.report("rest", "blocks of the device are left over");
}

} // namespace kvtide::explore
