// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/runtime.hpp"

#include "examples/replay/kv_arena.hpp"
#include "examples/replay/lane.hpp"
#include "examples/replay/options.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <string>

namespace kvtide::replay {

/// A rank of this process, and its KV memory.
class local_lane final : public lane {
public:
  /// In the engine's process.
  /// @param side Must outlive this object.
  local_lane(const replay_options& opts, rank_id id, kvtide::rank& side);

  /// In the process of a `kvtide::worker`: the loss of its scheduler is no
  /// reason to end, and steps that its engine never ended are ended here.
  /// @param idle Called now and then while a call waits; throws to end the
  ///             wait.
  local_lane(const replay_options& opts, rank_id id, kvtide::rank& side,
             std::function<void()> idle);

  void register_kv() override;
  kv_registered await_registered() override;
  void begin_step(step_id step, const std::string& plan) override;
  readiness await_ready(step_id step) override;
  void compute(const kv_work& work) override;
  void end_step(step_id step, nanoseconds_t end) override;
  void settle() override;
  void await_settled() override;
  check_tally take_tally() override;
  copy_work get_copies() override;
  void unregister_kv() override;
  void await_unregistered() override;

private:
  template <class Answer>
  Answer await(const char* what);

  rank_id id_;
  kvtide::rank* side_;
  device_kind kind_;
  std::string fingerprint_;
  kv_arena arena_;
  kv_content content_;
  std::function<void()> idle_;
  std::deque<rank_event> heard_;
  /// Was begun and has not ended.
  std::optional<step_id> open_;
};

} // namespace kvtide::replay
