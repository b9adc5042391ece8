// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <caf/fwd.hpp>

namespace kvtide::net {

/// Gives an actor system a name in the network that nobody had before. CAF
/// makes one of the process number and of the hardware addresses: containers
/// that share a host's network all have number 1, and one that is started again
/// would be taken for the one it replaces. Before the system starts.
void load_new_name(caf::actor_system_config& config);

} // namespace kvtide::net
