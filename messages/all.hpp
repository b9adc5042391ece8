// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace caf {
class actor_system_config;
} // namespace caf

namespace kvtide {

/// Makes the messages that cross processes known to CAF. To be called once per
/// configuration, before the actor system starts.
void register_messages(caf::actor_system_config& config);

} // namespace kvtide
