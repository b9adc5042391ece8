// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a request understands. Only the scheduler speaks to it. Answers carry
/// the turn of their question.

#pragma once

#include "core/key_list.hpp"
#include "core/short_list.hpp"
#include "core/table_update.hpp"
#include "messages/fwd.hpp"
#include "messages/turn.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstddef>
#include <vector>

namespace kvtide::msg {

/// Asks what can be stored below the wanted number of tokens. Answered by
/// `store_offer`.
struct plan_store {
  turn_id turn = 0;
  core::table_update update;
  /// Every key of the request, one view per group.
  core::per_group<core::key_view> keys;
  /// The intent, see core/store_intent.hpp.
  token_count wanted = 0;
  /// Per group: first chunk not yet considered stored.
  core::per_group<std::size_t> next;
};

/// Asks which chunks a load has to read. Answered by `load_offer`.
struct plan_load {
  turn_id turn = 0;
  core::table_update update;
  /// Every key of the request, one view per group.
  core::per_group<core::key_view> keys;
  /// Tokens that will be there after the load.
  token_count total = 0;
  std::vector<std::vector<block_id>> blocks;
  std::vector<std::vector<std::uint8_t>> hashed;
};

/// The request is over. Its last message, on the same path as all others.
struct retire {};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::plan_store)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::plan_load)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::retire)

namespace kvtide {

/// Owns the block tables of one request.
using request_actor = caf::typed_actor<caf::reacts_to<msg::plan_store>,
                                       caf::reacts_to<msg::plan_load>,
                                       caf::reacts_to<msg::retire>>;

} // namespace kvtide
