// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/ids.hpp"

#include "examples/replay/kv_content.hpp"
#include "examples/replay/kv_span.hpp"
#include "examples/replay/replay_failure.hpp"
#include "examples/replay/runtime_time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::replay {

/// When a step's compute may start.
struct readiness {
  /// Some rank has to wait for copies.
  bool waits = false;
  /// Simulated; zero if no rank waits.
  nanoseconds_t not_before = 0;
};

/// The rank cannot be reached any more: its process is gone or does not answer.
/// The replay goes on without it.
class lane_lost : public replay_failure {
public:
  using replay_failure::replay_failure;
};

/// The engine's way to one rank: the process that owns the rank's KV memory,
/// writes and compares bytes there, and brackets steps with the library's
/// calls. What a serving engine does by its own step channel.
///
/// Calls come in two halves where ranks work at the same time: the first one
/// does not wait. Calls take effect in call order. Everything may throw
/// `replay_failure`, and where the rank is in another process `lane_lost`;
/// after that nothing but the destructor may be called.
class lane {
public:
  lane() = default;
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;
  virtual ~lane() = default;

  /// Registers the memory with the library.
  virtual void register_kv() = 0;
  /// Throws `bad_configuration` if it was refused.
  [[nodiscard]] virtual kv_registered await_registered() = 0;

  /// @param plan `step_plan::bytes`
  virtual void begin_step(step_id step, const std::string& plan) = 0;
  /// Waits until compute of the step may be enqueued. On a GPU the compute
  /// stream waits for the copies from here on.
  [[nodiscard]] virtual readiness await_ready(step_id step) = 0;

  /// Does all of it, or enqueues it. What comparing says comes from
  /// `take_tally`.
  virtual void compute(const kv_work& work) = 0;

  /// @param end Simulated end of the step's compute; without meaning on a GPU,
  ///            where everything that was enqueued counts, and with the real
  ///            clock.
  virtual void end_step(step_id step, nanoseconds_t end) = 0;

  /// Asks for the end of everything that was said before, compute included.
  virtual void settle() = 0;
  virtual void await_settled() = 0;

  /// What was compared and has been heard of since the last call.
  [[nodiscard]] virtual check_tally take_tally() = 0;

  [[nodiscard]] virtual copy_work get_copies() = 0;

  /// Gives the memory back.
  virtual void unregister_kv() = 0;
  virtual void await_unregistered() = 0;
};

} // namespace kvtide::replay
