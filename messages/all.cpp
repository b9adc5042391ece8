// SPDX-License-Identifier: Apache-2.0

#include "messages/all.hpp"

#include "messages/directory.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/join.hpp"
#include "messages/scheduler.hpp"

#include <caf/actor_system_config.hpp>

namespace kvtide {

void register_messages(caf::actor_system_config& config) {
  config.add_message_types<caf::id_block::kvtide_wire>();
}

} // namespace kvtide
