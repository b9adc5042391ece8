// SPDX-License-Identifier: Apache-2.0

/// @file
/// Events of C: descriptions of events of C++, which stay where they are.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/kvtide.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <vector>

/// One of the two lists of events is empty.
struct kvtide_batch {
  /// What `events` is about, and where most of its pointers lead.
  std::vector<kvtide::engine_event> of_engine;
  std::vector<kvtide::rank_event> of_rank;
  /// Lists that C++ has in another form.
  std::pmr::monotonic_buffer_resource memory;
  std::vector<kvtide_event> events;
};

namespace kvtide::capi {

using batch_ptr = std::unique_ptr<kvtide_batch>;

/// Describes events, which must stay where they are.
void describe(const std::vector<engine_event>& events, kvtide_batch& out);
void describe(const std::vector<rank_event>& events, kvtide_batch& out);

/// Of the call that an event answers; zero if it answers none.
[[nodiscard]] ticket_id ticket_of(const engine_event& event);

/// KVTIDE_EVENT_...
[[nodiscard]] std::int32_t kind_of(const rank_event& event);

/// Refuses with the error of the one event that there is, if it is one.
void check_failure(const kvtide_batch& one);

} // namespace kvtide::capi
