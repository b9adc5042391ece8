// SPDX-License-Identifier: Apache-2.0

/// @file
/// Who answers with `options::host_bytes` zero: no actors, but two objects that
/// say at once, on the caller's thread, what a cache without room would say.
///
/// They know no requests and no jobs. So a call that names an unknown request
/// or comes too early does not fail, and what needs more than a few comparisons
/// is not looked at: hashes, block tables, progress, the rows of a step, and
/// whether one lookup names a request twice.

#pragma once

#include "kvtide/options.hpp"

#include "actors/one_caller.hpp"
#include "actors/ports.hpp"
#include "core/order_log.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/scheduler.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace kvtide {

/// In the place of the scheduler.
///
/// Thread-safety: as `runtime`. Blocking: never.
class no_cache {
public:
  /// @param queue gets an answer before the call that asked for it returns
  /// @param caller who makes the calls; may be null
  no_cache(const options& opts, std::shared_ptr<engine_queue> queue,
           std::shared_ptr<const one_caller> caller = nullptr);

  void answer(const msg::add& x);

  void answer(const msg::extend&) {
    // nop
  }

  void answer(const msg::lookup& x);
  void answer(const msg::decline& x);
  void answer(const msg::allocate& x);
  void answer(const msg::step& x);

  void answer(const msg::outputs&) {
    // nop
  }

  void answer(const msg::truncate&) {
    // nop
  }

  void answer(const msg::finish& x);
  void answer(const msg::reset& x);
  void answer(const msg::get_stats& x);
  void answer(const msg::take_events& x);
  void answer(const msg::shutdown& x);
  void answer(const msg::advance& x);
  void answer(const msg::sleep& x);
  /// No rank has to have memory: nothing will touch it.
  void answer(const msg::wake& x);
  void answer(const msg::explain& x);

private:
  void fail(ticket_id ticket, request_id id, error reason);

  device_kind device_;
  std::shared_ptr<engine_queue> queue_;
  std::shared_ptr<const one_caller> caller_;
  core::order_log order_;
  stats counters_;
  std::optional<step_id> last_step_;
  /// Simulated time.
  nanoseconds_t now_ = 0;
  bool stopping_ = false;
  bool asleep_ = false;
};

/// In the place of one rank's worker and device.
///
/// Thread-safety: as `rank`. Blocking: never.
class no_cache_rank {
public:
  /// @param queue gets an answer before the call that asked for it returns
  no_cache_rank(rank_id id, const options& opts,
                std::shared_ptr<rank_queue> queue,
                std::shared_ptr<const one_caller> caller = nullptr);

  /// The memory is checked as always, but of any kind: nothing touches it.
  void answer(const msg::register_kv& x);
  void answer(const msg::unregister_kv& x);
  /// The plan is not read: it says nothing.
  void answer(const msg::await_step& x);

  void answer(const msg::end_step&) {
    // nop
  }

  void answer(const msg::get_rank_stats& x);

private:
  rank_id id_;
  std::uint32_t groups_;
  std::uint32_t blocks_per_chunk_;
  std::string model_fingerprint_;
  std::shared_ptr<rank_queue> queue_;
  std::shared_ptr<const one_caller> caller_;
};

} // namespace kvtide
