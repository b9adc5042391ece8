// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/runtime.hpp"

#include "examples/replay/lane.hpp"
#include "examples/replay/options.hpp"
#include "examples/replay/outage_log.hpp"
#include "examples/replay/remote_lane.hpp"
#include "examples/replay/runtime_link.hpp"
#include "examples/replay/runtime_time.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::replay {

/// All ranks of the engine. One that is lost is left out, until its process is
/// there again and the engine has taken back what that rank does not know.
///
/// Every call may throw `replay_failure`; none waits longer than
/// `replay_options::lane_limit` for a process.
class lanes {
public:
  /// Makes the ranks of this process.
  lanes(const replay_options& opts, runtime& rt, runtime_time& spent,
        outage_log& outages);

  /// Waits for the ranks of other processes, and registers the memory of all.
  /// Throws `bad_configuration` if one is refused or does not come in time.
  void join(const join_watch& watch);

  // -- steps
  // -----------------------------------------------------------------------

  /// Begins the step on all ranks and waits until each is ready.
  [[nodiscard]] readiness begin_step(const step_plan& plan);
  void compute(const kv_work& work);
  void end_step(step_id step, nanoseconds_t end);
  /// Blocks until compute is over everywhere.
  void settle();
  /// The same if something was compared that is not known to be over: the next
  /// step may overwrite it.
  void settle_checks();

  // -- ranks that are away
  // ---------------------------------------------------------

  /// Everything that was computed lies on all ranks.
  [[nodiscard]] bool whole() const noexcept;

  /// Looks for ranks that were lost; does not wait.
  /// @returns true if one can be taken back: the engine has all requests
  ///          computed again, says so in an empty step, and calls `readmit`
  [[nodiscard]] bool look_for_lost();

  /// Takes back who can be. Memory that was not registered is from here on, and
  /// its rank is in the next step.
  void readmit();

  // -- what was found
  // --------------------------------------------------------------

  [[nodiscard]] const check_tally& tally();
  [[nodiscard]] copy_work get_copies();
  /// Gives all memory back.
  void unregister();

  [[nodiscard]] const std::vector<std::string>& notes() const noexcept {
    return notes_;
  }

  [[nodiscard]] std::uint64_t slots() const noexcept {
    return slots_;
  }

  [[nodiscard]] std::uint64_t slot_bytes() const noexcept {
    return slot_bytes_;
  }

private:
  using wall_clock = std::chrono::steady_clock;

  enum class standing : std::uint8_t {
    /// Takes part.
    here,
    /// Is there again, with the memory that it had: takes part in steps, but
    /// what they compute is not registered.
    catching_up,
    /// Is there again, and knows nothing of steps.
    fresh,
    /// Cannot be reached.
    away,
  };

  struct seat {
    rank_id rank = 0;
    /// Of its socket; empty if it is in this process.
    std::string path;
    standing where = standing::away;
    std::unique_ptr<lane> way{};
    /// Said hello, and waits.
    std::unique_ptr<remote_lane> caller{};
    std::optional<std::uint64_t> life{};
    wall_clock::time_point next_call{};
    /// The answer that this one waits for was asked for.
    bool asked = false;
  };

  /// Calls `what(seat)`; a process that cannot be reached is away from then on.
  template <class What>
  void guarded(seat& at, What what);
  /// The same for all that take part in steps.
  template <class What>
  void for_each(What what);
  /// All ranks of its process.
  void lose_process(const seat& first);
  void lose(seat& at);
  void dial(seat& at);
  void dial_again(seat& at);
  void note(const kv_registered& what);
  [[nodiscard]] std::string names_of_missing() const;

  const replay_options& opts_;
  runtime_time& spent_;
  outage_log& outages_;
  std::vector<seat> seats_;
  bool checks_open_ = false;
  check_tally tally_;
  std::vector<std::string> notes_;
  std::uint64_t slots_ = 0;
  std::uint64_t slot_bytes_ = 0;
};

} // namespace kvtide::replay
