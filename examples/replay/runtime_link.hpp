// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/runtime.hpp"

#include "examples/replay/kv_arena.hpp"
#include "examples/replay/options.hpp"
#include "examples/replay/replay_failure.hpp"
#include "examples/replay/runtime_time.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kvtide::replay {

/// What comes from the runtime without a question.
using notice = std::variant<load_done, load_failed, blocks_released>;

/// When a step's compute may start on the slowest rank.
struct readiness {
  /// Some rank has to wait for copies.
  bool waits = false;
  /// Simulated; zero if no rank waits.
  nanoseconds_t not_before = 0;
};

/// The engine's end of the runtime: waits for answers, keeps notices for later,
/// and measures what the runtime costs.
///
/// Every call may throw `replay_failure`.
class runtime_link {
public:
  /// Starts the runtime and registers the memory of all ranks.
  /// @param arenas One per rank; must outlive this object.
  runtime_link(const replay_options& opts, const std::vector<kv_arena>& arenas);

  // -- requests
  // ------------------------------------------------------------------

  void add(add_request call);
  void extend(extend_keys call);
  [[nodiscard]] lookup_hit lookup(const lookup_row& row);
  void decline(promise_id promise);
  void allocate(allocated call);
  [[nodiscard]] finish_answer finish(const finish_call& call);

  // -- steps
  // -----------------------------------------------------------------------

  [[nodiscard]] step_plan step(step_call call);
  /// Begins the step on all ranks and waits until each is ready. On a GPU the
  /// compute stream waits for the copies from here on.
  [[nodiscard]] readiness begin_step(const step_plan& plan);
  /// @param end Simulated end of the step's compute; without meaning on a GPU,
  ///            where everything that was enqueued counts.
  void end_step(step_id step, nanoseconds_t end);
  void outputs(outputs_call call);

  // -- the whole
  // ---------------------------------------------------------------------

  /// Moves simulated time; does nothing with the real clock.
  void advance(nanoseconds_t now);
  /// With the real clock: waits a moment for notices.
  void rest();
  [[nodiscard]] std::vector<notice> take_notices();
  [[nodiscard]] std::vector<cache_event> take_events();
  [[nodiscard]] stats get_stats();
  /// Asks all ranks.
  [[nodiscard]] copy_work get_copies();
  /// Gives the memory back and stops.
  /// @returns the number of jobs that were still in flight.
  std::size_t close();

  /// What the device said of itself when the memory of rank 0 was registered.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept {
    return notes_;
  }

  // -- what was noticed
  // ----------------------------------------------------------------

  /// Bytes of the host pool of one rank, and of one slot.
  [[nodiscard]] std::uint64_t slots() const noexcept {
    return slots_;
  }

  [[nodiscard]] std::uint64_t slot_bytes() const noexcept {
    return slot_bytes_;
  }

  /// Calls without effect, and what the first one was told.
  [[nodiscard]] std::uint64_t failed_calls() const noexcept {
    return failed_calls_;
  }

  [[nodiscard]] const std::string& first_failure() const noexcept {
    return first_failure_;
  }

  [[nodiscard]] std::uint64_t overloads() const noexcept {
    return overloads_;
  }

  [[nodiscard]] std::uint64_t lost_ranks() const noexcept {
    return lost_ranks_;
  }

  /// What `runtime_time::calls` grew by since the last call of this function.
  [[nodiscard]] std::chrono::nanoseconds take_spent() noexcept;

  [[nodiscard]] const runtime_time& spent() const noexcept {
    return spent_;
  }

private:
  template <class Answer>
  std::optional<Answer> await(ticket_id ticket, const char* what);
  void keep(engine_event event);
  void count_failure(const error& reason);
  void for_each_rank(const std::function<void(rank&)>& call);
  template <class Answer>
  Answer await(rank& side, const char* what);

  runtime runtime_;
  const std::vector<kv_arena>& arenas_;
  std::uint32_t ranks_;
  device_kind kind_;
  std::vector<notice> notices_;
  std::vector<std::string> notes_;
  std::uint64_t slots_ = 0;
  std::uint64_t slot_bytes_ = 0;
  std::uint64_t failed_calls_ = 0;
  std::string first_failure_;
  std::uint64_t overloads_ = 0;
  std::uint64_t lost_ranks_ = 0;
  runtime_time spent_;
  std::chrono::nanoseconds taken_{0};
};

} // namespace kvtide::replay
