// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "messages/gpu_worker.hpp"
#include "messages/join.hpp"
#include "messages/join_terms.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <map>

namespace kvtide::net {

/// A rank that wants to take part.
struct link_rank {
  join_terms terms;
  gpu_worker_actor worker;
};

} // namespace kvtide::net

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::net::link_rank)

namespace kvtide::net {

using simple_link_actor = rank_link_port::extend<caf::reacts_to<link_rank>>;

struct simple_link_state {
  static inline const char* name = "rank-link";

  void add(const link_rank& x);
  void knock(const msg::knock& x);
  void joined(const msg::joined& x);
  void refused(const msg::join_refused& x);
  void on_down(const caf::down_msg& down);
  void ask(const link_rank& x);

  simple_link_actor::pointer self = nullptr;
  rank_door_actor door;
  std::map<rank_id, link_rank> ranks;
};

simple_link_actor::behavior_type
simple_link(simple_link_actor::stateful_pointer<simple_link_state> self);

} // namespace kvtide::net
