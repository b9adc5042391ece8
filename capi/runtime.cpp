// SPDX-License-Identifier: Apache-2.0

/// @file
/// A runtime from start to end, and what comes back from it.

#include "capi/arguments.hpp"
#include "capi/handles.hpp"
#include "capi/options.hpp"

#include <chrono>

using namespace kvtide::capi;

kvtide_status kvtide_start(const kvtide_options* options,
                           kvtide_runtime** runtime) {
  return guarded([&] {
    auto& out = not_null(runtime, "runtime");
    const auto opts = take_options(options);
    auto made
      = std::make_unique<kvtide_runtime>(check(kvtide::runtime::start(opts)));
    for (kvtide::rank_id id = 0; id < opts.ranks; ++id)
      made->ranks.push_back(
        std::make_unique<kvtide_rank>(made->side.local_rank(id)));
    out = made.release();
  });
}

void kvtide_destroy(kvtide_runtime* runtime) {
  (void)guarded([&] { delete runtime; });
}

kvtide_status kvtide_poll(kvtide_runtime* runtime, kvtide_batch** batch) {
  return guarded([&] {
    auto& events = not_null(runtime, "runtime").events;
    not_null(batch, "batch") = events.poll();
  });
}

kvtide_status kvtide_await(kvtide_runtime* runtime, uint64_t ticket,
                           int64_t timeout_ms, kvtide_batch** answer) {
  return guarded([&] {
    auto& events = not_null(runtime, "runtime").events;
    auto& out = not_null(answer, "answer");
    if (ticket == 0)
      refuse("ticket is 0; pass the one that a call gave");
    const auto is_it = [ticket](const kvtide::engine_event& event) {
      return ticket_of(event) == ticket;
    };
    auto made
      = batch_ptr{events.await(std::chrono::milliseconds{timeout_ms}, is_it)};
    if (made == nullptr)
      time_out(timeout_ms);
    check_failure(*made);
    out = made.release();
  });
}

int kvtide_event_fd(const kvtide_runtime* runtime) {
  return runtime == nullptr ? -1 : runtime->side.event_fd();
}

kvtide_status kvtide_wait(const kvtide_runtime* runtime, int64_t timeout_ms) {
  return guarded([&] {
    const auto& events = not_null(runtime, "runtime").events;
    if (!events.wait(std::chrono::milliseconds{timeout_ms}))
      time_out(timeout_ms);
  });
}

kvtide_status kvtide_restart_rank(kvtide_runtime* runtime, uint32_t rank) {
  return guarded(
    [&] { check(not_null(runtime, "runtime").side.restart_rank(rank)); });
}

kvtide_status kvtide_local_rank(kvtide_runtime* runtime, uint32_t rank,
                                kvtide_rank** out) {
  return guarded([&] {
    const auto& ranks = not_null(runtime, "runtime").ranks;
    auto& to = not_null(out, "out");
    if (rank >= ranks.size())
      refuse("rank " + std::to_string(rank) + " does not exist; there are "
             + std::to_string(ranks.size()) + ", counted from 0");
    to = ranks[rank].get();
  });
}
