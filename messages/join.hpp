// SPDX-License-Identifier: Apache-2.0

/// @file
/// How a rank of another process comes to its scheduler. The door is on the
/// scheduler's side and answers; the link is on the rank's side and asks.
/// Whoever dialed: the link always speaks first, and a scheduler that dialed
/// only knocks.

#pragma once

#include "messages/fwd.hpp"
#include "messages/timer.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <string>

namespace kvtide::msg {

/// Counts up with every change of what crosses processes. Both sides have to
/// have the same one; a peer with another one is refused with a sentence.
inline constexpr std::uint32_t protocol_version = 2;

/// The scheduler dialed: here is who answers `join`. Peers of all versions read
/// this and the next two.
struct knock {
  std::uint32_t protocol = protocol_version;
  caf::strong_actor_ptr door;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, knock& x) {
  return f(caf::meta::type_name("knock"), x.protocol, x.door);
}

/// One rank wants to serve. Answered by `joined` or `join_refused`.
struct join {
  std::uint32_t protocol = protocol_version;
  /// `join_terms` as bytes, read only if the version is the same.
  std::string terms;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, join& x) {
  return f(caf::meta::type_name("join"), x.protocol, x.terms);
}

/// Why a rank may not join.
struct join_refused {
  std::uint32_t protocol = protocol_version;
  rank_id rank = 0;
  /// A sentence that says what to do.
  std::string reason;
  /// Asking again cannot help: the two sides do not fit.
  bool for_good = false;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, join_refused& x) {
  return f(caf::meta::type_name("join_refused"), x.protocol, x.rank, x.reason,
           x.for_good);
}

/// The rank takes part. Its worker says `worker_ready` to the scheduler next.
struct joined {
  rank_id rank = 0;
  /// Which life of the rank this is: the same for the same `join_terms::life`.
  incarnation_id incarnation = 0;
  /// Which life of the scheduler this is: a random number.
  std::uint64_t epoch = 0;
  caf::strong_actor_ptr scheduler;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, joined& x) {
  return f(caf::meta::type_name("joined"), x.rank, x.incarnation, x.epoch,
           x.scheduler);
}

/// From a link to the worker of its own process: the scheduler can be reached,
/// for the first time or again.
struct attach {
  incarnation_id incarnation = 0;
  std::uint64_t epoch = 0;
  caf::strong_actor_ptr scheduler;
};

/// To a link from whoever spawned it: this rank lives here from now on. Another
/// life of the rank takes the place of the one before.
struct host_rank {
  rank_id rank = 0;
  /// See `join_terms::life`.
  std::uint64_t life = 0;
  /// What `encode_terms` made of the rank's terms.
  std::string terms;
  /// Its `gpu_worker`.
  caf::strong_actor_ptr worker;
};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::attach)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::host_rank)

namespace kvtide {

/// Lets ranks of other processes in. Answers go to the sender of `join`.
using rank_door_actor = caf::typed_actor<caf::reacts_to<msg::join>>;

/// What a peer may say to a link.
using rank_link_port
  = caf::typed_actor<caf::reacts_to<msg::knock>, caf::reacts_to<msg::joined>,
                     caf::reacts_to<msg::join_refused>>;

/// One per process that hosts ranks for a scheduler elsewhere.
using rank_link_actor = rank_link_port::extend<caf::reacts_to<msg::host_rank>,
                                               caf::reacts_to<msg::timer>>;

} // namespace kvtide
