// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the directory of replicas understands and answers. All of it crosses
/// processes; keys are digests (core/key_hash.hpp) of eight bytes each, the
/// lowest first, in strings, which CAF copies whole.

#pragma once

#include "kvtide/directory.hpp"

#include "messages/fwd.hpp"
#include "messages/join.hpp"

#include <caf/meta/type_name.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::msg {

/// A replica wants to take part, or to start over. Answered by `enrolled`.
struct enroll {
  std::uint32_t protocol = protocol_version;
  std::string replica;
  /// Higher for later lives of the replica.
  std::uint64_t incarnation = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, enroll& x) {
  return f(caf::meta::type_name("enroll"), x.protocol, x.replica,
           x.incarnation);
}

struct enrolled {
  std::uint64_t incarnation = 0;
  /// Why not, a sentence; empty if it takes part.
  std::string refused;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, enrolled& x) {
  return f(caf::meta::type_name("enrolled"), x.incarnation, x.refused);
}

/// The replica has nothing any more.
struct withdraw {
  std::uint64_t incarnation = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, withdraw& x) {
  return f(caf::meta::type_name("withdraw"), x.incarnation);
}

/// What a replica has more and less than before; see
/// `core::replica_directory::batch`. Answered by `published`.
struct publish {
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  bool starts_over = false;
  bool more = false;
  std::string removed;
  std::string stored;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, publish& x) {
  return f(caf::meta::type_name("publish"), x.incarnation, x.sequence,
           x.starts_over, x.more, x.removed, x.stored);
}

/// It arrived.
struct published {
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  /// Something before it is missing, or there is room again: start over.
  bool start_over = false;
  /// Nobody of that name and life takes part: enroll first.
  bool unknown = false;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, published& x) {
  return f(caf::meta::type_name("published"), x.incarnation, x.sequence,
           x.start_over, x.unknown);
}

/// The keys of one full attention group, in the order of the prompt.
struct key_run {
  token_count chunk_tokens = 0;
  std::string digests;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, key_run& x) {
  return f(caf::meta::type_name("key_run"), x.chunk_tokens, x.digests);
}

/// Who has most of this prompt? Answered by `replicas_found`.
struct ask_replicas {
  std::uint32_t protocol = protocol_version;
  ticket_id ticket = 0;
  std::vector<key_run> runs;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ask_replicas& x) {
  return f(caf::meta::type_name("ask_replicas"), x.protocol, x.ticket, x.runs);
}

struct replicas_found {
  ticket_id ticket = 0;
  /// Why there is no answer, a sentence; empty if there is one.
  std::string refused;
  /// Empty if there are no replicas.
  std::string best;
  std::vector<replica_holding> all;
};

} // namespace kvtide::msg

namespace kvtide {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, replica_holding& x) {
  return f(caf::meta::type_name("replica_holding"), x.replica, x.tokens,
           x.chunks, x.whole);
}

namespace msg {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, replicas_found& x) {
  return f(caf::meta::type_name("replicas_found"), x.ticket, x.refused, x.best,
           x.all);
}

} // namespace msg

/// Knows which replica has which chunks. Answers go to the sender.
using directory_actor
  = caf::typed_actor<caf::reacts_to<msg::enroll>, caf::reacts_to<msg::withdraw>,
                     caf::reacts_to<msg::publish>,
                     caf::reacts_to<msg::ask_replicas>>;

/// Who has to hear where a directory is, before it can ask.
using directory_seeker = caf::typed_actor<caf::reacts_to<msg::knock>>;

/// Who asks for answers.
using directory_user_port
  = caf::typed_actor<caf::reacts_to<msg::enrolled>,
                     caf::reacts_to<msg::published>,
                     caf::reacts_to<msg::replicas_found>>;

} // namespace kvtide
