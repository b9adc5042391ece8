// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "messages/engine.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace kvtide::conformance {

/// Everything that an engine can hear.
using heard
  = std::variant<lookup_answer, step_plan, finish_answer, stats_answer,
                 events_answer, msg::snapshot_answer, call_done, call_failed,
                 load_done, load_failed, blocks_released, rank_lost, rank_back,
                 overload, cache_lost>;

/// What the driver's engine has heard and nobody has taken yet, in order.
class engine_log {
public:
  void add(heard event) {
    events_.push_back(std::move(event));
  }

  /// Takes the first `T` for which `match` is true.
  template <class T, class Match>
  std::optional<T> take(Match match) {
    const auto pos = std::find_if(events_.begin(), events_.end(),
                                  [&match](const heard& event) {
                                    const auto* found = std::get_if<T>(&event);
                                    return found != nullptr && match(*found);
                                  });
    if (pos == events_.end())
      return std::nullopt;
    auto result = std::optional<T>{std::get<T>(std::move(*pos))};
    events_.erase(pos);
    return result;
  }

  /// Takes the answer to a call.
  template <class T>
  std::optional<T> answer(ticket_id ticket) {
    return take<T>([ticket](const T& x) { return x.ticket == ticket; });
  }

  /// Takes all that is left.
  [[nodiscard]] std::vector<heard> rest() {
    return std::exchange(events_, {});
  }

private:
  std::vector<heard> events_;
};

struct driver_engine_state {
  static inline const char* name = "driver-engine";
};

/// Plays the engine's ear: writes everything to `log`.
engine_actor::behavior_type
driver_engine(engine_actor::stateful_pointer<driver_engine_state> self,
              std::shared_ptr<engine_log> log);

/// "load_done of job 3", for messages.
[[nodiscard]] std::string describe(const heard& event);

} // namespace kvtide::conformance
