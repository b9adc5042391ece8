// SPDX-License-Identifier: Apache-2.0

/// @file
/// What is wrong with a call whatever its request went through: said in the
/// same words with a cache and without one.

#pragma once

#include "kvtide/calls.hpp"
#include "kvtide/error.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/options.hpp"

#include <string>

namespace kvtide::core {

/// How sentences name a request.
[[nodiscard]] std::string name_of(request_id id);

// -- checks: `ec::none` if all is well ----------------------------------------

[[nodiscard]] error fault_of(const add_request& call);

[[nodiscard]] error fault_of(const lookup_row& row);

[[nodiscard]] error fault_of(const finish_call& call);

/// @param rank who registers the memory
/// @param model_fingerprint see `options`
[[nodiscard]] error fault_of(const kv_memory& memory, rank_id rank,
                             const std::string& model_fingerprint);

/// @param last the step before
[[nodiscard]] error fault_of_step(step_id step, step_id last);

/// @param now simulated time so far
[[nodiscard]] error fault_of_advance(device_kind device, nanoseconds_t now,
                                     nanoseconds_t target);

// -- what the caller has found out itself -------------------------------------

/// @param found tokens of the request's last lookup
[[nodiscard]] error bad_load(request_id id, token_count found);

[[nodiscard]] error unknown_promise(promise_id promise);

/// No `add` after `shutdown`.
[[nodiscard]] error too_late_to_add();

/// @param what the engine does that it must not between `sleep` and `wake`
[[nodiscard]] error is_asleep(const char* what);

/// No second `sleep`.
[[nodiscard]] error asleep_already();

/// No `wake` without `sleep`.
[[nodiscard]] error not_asleep();

/// No `wake` without all memory.
/// @param gone its worker has died, or has not joined yet
[[nodiscard]] error rank_not_ready(rank_id rank, bool gone);

/// A thread called while another was in a call.
[[nodiscard]] error second_thread(const char* object);

/// No second `shutdown`.
[[nodiscard]] error stopping_already();

/// Who would take the call has died.
[[nodiscard]] error no_scheduler();
[[nodiscard]] error no_worker();

/// The scheduler is in another process and cannot be reached.
[[nodiscard]] error steps_alone();

} // namespace kvtide::core
