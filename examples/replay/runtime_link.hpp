// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/runtime.hpp"

#include "examples/replay/options.hpp"
#include "examples/replay/outage_log.hpp"
#include "examples/replay/runtime_time.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kvtide::replay {

/// Told now and then whom the replay waits for before it starts. Answers false
/// to give up.
using join_watch = std::function<bool(const std::string&)>;

/// What comes from the runtime without a question.
using notice = std::variant<load_done, load_failed, blocks_released>;

/// The engine's end of the runtime: waits for answers, keeps notices for later,
/// and measures what the runtime costs.
///
/// Every call may throw `replay_failure`.
class runtime_link {
public:
  /// Starts the runtime.
  /// @param net Null if all ranks are in this process.
  /// @param spent What it costs; outlives this object, as the next one.
  runtime_link(const replay_options& opts, const std::shared_ptr<network>& net,
               runtime_time& spent, outage_log& outages);

  /// For the ranks of this process.
  [[nodiscard]] runtime& whole() noexcept {
    return runtime_;
  }

  /// Waits until ranks of other processes have joined, and the host pool is
  /// open. Throws `bad_configuration` if they do not come in time.
  void await_ranks(const join_watch& watch);

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
  /// Stops. The ranks have given their memory back.
  /// @returns the number of jobs that were still in flight.
  std::size_t close();

  // -- what was noticed
  // ----------------------------------------------------------------

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

  /// What `runtime_time::calls` grew by since the last call of this function.
  [[nodiscard]] std::chrono::nanoseconds take_spent() noexcept;

private:
  template <class Answer>
  std::optional<Answer> await(ticket_id ticket, const char* what);
  void keep(engine_event event);
  void count_failure(const error& reason);

  runtime runtime_;
  const replay_options& opts_;
  device_kind kind_;
  std::vector<notice> notices_;
  std::uint64_t failed_calls_ = 0;
  std::string first_failure_;
  std::uint64_t overloads_ = 0;
  runtime_time& spent_;
  outage_log& outages_;
  std::chrono::nanoseconds taken_{0};
};

} // namespace kvtide::replay
