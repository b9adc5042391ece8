// SPDX-License-Identifier: Apache-2.0

#include "core/call_faults.hpp"

namespace kvtide::core {

std::string name_of(request_id id) {
  return "request " + std::to_string(id);
}

// -- checks -------------------------------------------------------------------

error fault_of(const add_request& call) {
  if (is_token_count(call.prompt_tokens) && is_token_count(call.known_tokens)
      && call.known_tokens >= call.prompt_tokens && call.cap >= 0)
    return {};
  return {ec::invalid_argument,
          name_of(call.request)
            + ": prompt_tokens and cap must not be negative, known_tokens not "
              "below prompt_tokens, and neither above max_tokens"};
}

error fault_of(const lookup_row& row) {
  if (row.local >= 0 && row.known_tokens >= row.local
      && is_token_count(row.known_tokens))
    return {};
  return {ec::invalid_argument,
          name_of(row.request)
            + ": local must be between 0 and known_tokens, and that at most "
              "max_tokens"};
}

error fault_of(const finish_call& call) {
  if (is_token_count(call.known) && is_token_count(call.computed))
    return {};
  return {ec::invalid_argument,
          name_of(call.request)
            + " goes on: known and computed must be from 0 to max_tokens"};
}

error fault_of(const kv_memory& memory, rank_id rank,
               const std::string& model_fingerprint) {
  if (memory.rank != rank)
    return {ec::invalid_argument,
            "kv_memory::rank is " + std::to_string(memory.rank)
              + ", but this is rank " + std::to_string(rank)};
  if (memory.model_fingerprint != model_fingerprint)
    return {ec::invalid_argument, "kv_memory::model_fingerprint is '"
                                    + memory.model_fingerprint
                                    + "', but options::model_fingerprint is '"
                                    + model_fingerprint + "'"};
  // Who never writes reads what others wrote: only replicas share a pool.
  const auto only_reads = memory.writer == memory.writers && memory.writers > 1;
  if (memory.writer >= memory.writers && !only_reads)
    return {ec::invalid_argument,
            "kv_memory::writer is " + std::to_string(memory.writer) + " of "
              + std::to_string(memory.writers)
              + ": count from zero, or with several pass `writers` for a rank "
                "that never writes"};
  return {};
}

error fault_of_step(step_id step, step_id last) {
  if (step == last + 1)
    return {};
  return {ec::out_of_order, "step " + std::to_string(step) + " came after step "
                              + std::to_string(last)
                              + "; count steps up by one"};
}

error fault_of_advance(device_kind device, nanoseconds_t now,
                       nanoseconds_t target) {
  if (device != device_kind::host_virtual)
    return {ec::unsupported,
            "time can be advanced only with device_kind::host_virtual"};
  if (target < now)
    return {ec::invalid_argument, "simulated time is " + std::to_string(now)
                                    + " ns already and does not go back"};
  // Then all that never comes would be due, again and again.
  if (target == never)
    return {ec::invalid_argument, "simulated time does not go to `never`; the "
                                  "last moment is the one before"};
  return {};
}

// -- what the caller has found out itself -------------------------------------

error bad_load(request_id id, token_count found) {
  return {ec::invalid_argument,
          name_of(id) + ": external must be at most the "
            + std::to_string(found)
            + " tokens of the last lookup, and blocks and hashed must have one "
              "list per group of equal length, with room for all tokens up to "
              "the end of the load"};
}

error unknown_promise(promise_id promise) {
  return {ec::unknown_promise,
          "promise " + std::to_string(promise)
            + " was used, declined or has expired; nothing is held by it"};
}

error too_late_to_add() {
  return {ec::shutting_down, "the runtime is stopping; add no more requests"};
}

error is_asleep(const char* what) {
  return {ec::out_of_order, std::string{"an engine that sleeps "} + what
                              + " nothing: call wake first"};
}

error asleep_already() {
  return {ec::out_of_order, "the engine sleeps already: call wake first"};
}

error not_asleep() {
  return {ec::out_of_order,
          "the engine is awake: wake belongs behind a call of sleep"};
}

error rank_not_ready(rank_id rank, bool gone) {
  return {ec::rank_unavailable,
          "rank " + std::to_string(rank)
            + (gone ? " is not there: start it, with runtime::restart_rank if "
                      "it died, and"
                    : " has no registered memory:")
            + " call its register_kv, await kv_registered, then call wake "
              "again"};
}

error second_thread(const char* object) {
  return {ec::out_of_order,
          std::string{"two threads called the "} + object
            + " at the same time, and this call had no effect: let one thread "
              "make all calls, or guard them with a lock"};
}

error stopping_already() {
  return {ec::shutting_down, "the runtime is stopping already"};
}

error no_scheduler() {
  return {ec::shutting_down,
          "the scheduler is gone: no call is answered any more; destroy this "
          "runtime and start another one"};
}

error no_worker() {
  return {ec::rank_unavailable,
          "the worker of this rank is gone and no step_ready comes from it any "
          "more: wait for kv_unregistered, call runtime::restart_rank, then "
          "register_kv"};
}

error steps_alone() {
  return {ec::scheduler_unreachable,
          "the scheduler cannot be reached: steps go on without the cache "
          "until it is back, and nothing has to be called for that"};
}

} // namespace kvtide::core
