// SPDX-License-Identifier: Apache-2.0

/// @file
/// What is left when nothing can happen any more.

#include "actors/cache_manager.hpp"
#include "actors/scheduler.hpp"
#include "tests/explore/world.hpp"
#include "tests/support/actor_world.hpp"

#include <string>

namespace kvtide::explore {

namespace {

/// A hundred times what the last requests need.
constexpr std::size_t most_last_events = 20'000;

} // namespace

void world::check_rest() {
  ending_ = true;
  memory_->check_rest();
  check_leftovers();
  if (found())
    return;
  // It still serves, and what it has is right on all ranks.
  const auto serves = [this] {
    idle_times_ = 0; // The last requests may wait for time, too.
    auto events = std::size_t{0};
    while (!found() && ++events < most_last_events && plain_step())
      ; // nop
    if (!found() && !engine_->over())
      findings_.report("life", "a request that came after all others is stuck");
    return !found();
  };
  engine_->add_probes();
  if (!serves())
    return;
  engine_->add_last_writer();
  if (!serves())
    return;
  engine_->add_last_reader();
  if (serves())
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
  if (x.lost_requests + x.lost_caches > doomed_.size())
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
  check_pool();
  if (!engine_->holds_nothing())
    findings_.report("rest", "blocks of the device are left over");
}

/// Nobody has called CUDA in a way that it refuses, or in vain.
void world::check_machine() {
  for (const auto& text : stand_in::refusals())
    findings_.report("cuda", "refused: " + text);
  for (const auto& text : stand_in::warnings())
    if (text.find("never recorded") != std::string::npos)
      findings_.report("cuda", "in vain: " + text);
}

/// Each slot is free, or holds a chunk that may be evicted.
void world::check_pool() {
  const auto& manager = test::state_of<scheduler_state>(scheduler_).cache;
  if (!manager)
    return;
  const auto& pool = test::state_of<cache_manager_state>(manager).cache->pool();
  const auto state = pool.state();
  if (state.free + state.evictable != pool.slots())
    findings_.report("rest", "of " + std::to_string(pool.slots()) + " slots "
                               + std::to_string(state.free) + " are free and "
                               + std::to_string(state.evictable)
                               + " are idle: the others are lost");
}

} // namespace kvtide::explore
