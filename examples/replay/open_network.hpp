// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/network.hpp"

#include <memory>
#include <string>

namespace kvtide::replay {

/// `make_network`, or `ec::unsupported` in a program that is linked without
/// `kvtide::net`.
[[nodiscard]] result<std::shared_ptr<network>>
open_network(const network_options& opts);

/// `address_of`.
[[nodiscard]] std::string place_of(const network& net);

} // namespace kvtide::replay
