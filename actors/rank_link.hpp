// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "actors/alarm.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/join.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvtide {

/// Startup parameters of a link.
struct rank_link_config {
  /// Those that live here from the start.
  std::vector<msg::host_rank> ranks;

  /// How long a rank that was refused waits before it asks again.
  std::chrono::nanoseconds retry_delay = std::chrono::milliseconds{500};

  /// A join that had no answer for so long is said again. Longer than a dead
  /// peer stays unnoticed, so that no answer comes after all.
  std::chrono::nanoseconds patience = std::chrono::seconds{5};
};

/// State of a link: its ranks, the door that they join through, and what was
/// asked there. Has one entry per rank and per question, whatever peers say.
struct rank_link_state {
  static inline const char* name = "rank-link";

  struct seat {
    std::uint64_t life = 0;
    std::string terms;
    gpu_worker_actor worker;
    /// When it asks, or asks again.
    nanoseconds_t due = never;
    /// Why it was refused last: said once, however often it asks.
    std::string refusal;
  };

  /// A join without an answer. The door answers in order.
  struct question {
    rank_id rank = 0;
    std::uint64_t life = 0;
  };

  // -- message handlers -------------------------------------------------------

  void knock(const msg::knock& x);

  void joined(const msg::joined& x);

  void join_refused(const msg::join_refused& x);

  void host_rank(const msg::host_rank& x);

  void timer();

  void on_down(const caf::down_msg& down);

  // -- helpers ----------------------------------------------------------------

  void join(rank_id rank);

  /// Who has its answer now.
  /// @returns null if it was another life of that rank
  [[nodiscard]] seat* take_question();

  void forget_door();

  [[nodiscard]] bool is_from_door() const;

  void ignore(std::string_view what);

  [[nodiscard]] nanoseconds_t clock() const;

  void arm_timer();

  // -- members ----------------------------------------------------------------

  rank_link_actor::pointer self = nullptr;
  rank_link_config config;
  std::map<rank_id, seat> seats;
  /// Null if no scheduler can be reached.
  rank_door_actor door;
  std::deque<question> questions;
  /// What was wrong with the last scheduler that knocked; logged once.
  std::string misfit;
  alarm wake_up;
  /// Messages that answered no question.
  std::uint64_t ignored = 0;
};

/// Brings the ranks of a process to a scheduler in another one, and again when
/// the connection was lost. Speaks first, to each door that knocks; knows no
/// sockets. From `attach` on a rank's worker and the scheduler speak to each
/// other directly.
rank_link_actor::behavior_type
rank_link(rank_link_actor::stateful_pointer<rank_link_state> self,
          rank_link_config config);

} // namespace kvtide
