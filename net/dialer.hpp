// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "net/porter.hpp"

#include <caf/actor.hpp>
#include <caf/replies_to.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace kvtide::net {

/// It is time to dial.
struct dial_now {
  std::size_t target = 0;
};

/// How it ended.
struct dial_ended {
  std::size_t target = 0;
  dialed outcome;
};

} // namespace kvtide::net

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::net::dial_now)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::net::dial_ended)

namespace kvtide::net {

/// Time between two attempts: from the first, doubled until the last.
inline constexpr std::chrono::milliseconds first_pause{100};
inline constexpr std::chrono::milliseconds last_pause{1'000};

/// Where somebody answers who is not wanted, it takes a new start of one of
/// both.
inline constexpr std::chrono::milliseconds wrong_peer_pause{10'000};

/// What can be published somewhere.
struct peer_kind {
  /// A noun.
  std::string name;
  std::set<std::string> interface;
};

struct dialer_config {
  std::shared_ptr<porter> guard;
  /// CAF's broker.
  caf::actor broker;
  /// For CAF's own handshake.
  std::chrono::milliseconds patience{2'000};
  /// Who is dialed, as it was written.
  std::vector<std::string> targets;
  /// Where that is: asked on the porter's thread before each attempt.
  std::function<result<std::vector<endpoint>>(const std::string&)> find;
  std::vector<peer_kind> kinds;
  /// The one that has to be published there.
  std::string wanted;
  /// Hears of each who was reached.
  std::function<void(const caf::strong_actor_ptr&)> reached;
};

using dialer_actor
  = caf::typed_actor<caf::reacts_to<dial_now>, caf::reacts_to<dial_ended>>;

struct dialer_state {
  static inline const char* name = "dialer";

  struct place {
    std::string name;
    std::chrono::milliseconds pause = first_pause;
    /// While it is reached.
    caf::actor_addr peer;
    std::chrono::steady_clock::time_point since;
    /// What the log said last.
    std::string said;
  };

  void dial(const dial_now& x);

  void take(const dial_ended& x);

  /// @returns why a peer is not who is wanted, a sentence without a point;
  ///          empty if it is
  [[nodiscard]] std::string
  fault_of(const std::set<std::string>& interface) const;

  void greet(std::size_t index, const caf::strong_actor_ptr& peer);

  void on_down(const caf::down_msg& down);

  void fail(std::size_t index, const std::string& why,
            std::chrono::milliseconds least_pause = first_pause);

  void dial_later(std::size_t index,
                  std::chrono::milliseconds least_pause = first_pause);

  dialer_actor::pointer self = nullptr;
  dialer_config config;
  std::vector<place> targets;
};

/// Keeps dialing all targets for as long as it lives, and never waits: neither
/// for a peer nor for the network.
dialer_actor::behavior_type
dialer(dialer_actor::stateful_pointer<dialer_state> self, dialer_config config);

} // namespace kvtide::net
