// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a cache manager needs of a publisher: where to send.

#pragma once

#include "kvtide/directory.hpp"

#include <caf/actor_addr.hpp>

namespace kvtide {

class publisher {
public:
  publisher() = default;
  publisher(const publisher&) = delete;
  publisher& operator=(const publisher&) = delete;
  virtual ~publisher() = default;

  /// Of a `pool_watcher_port`.
  [[nodiscard]] virtual caf::actor_addr address() const = 0;
};

} // namespace kvtide
