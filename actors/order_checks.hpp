// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"

#include "core/order_log.hpp"

#include <functional>
#include <string>

namespace kvtide {

/// The order log of one actor: the first breach of each kind goes to the log,
/// and with `order_checks::fatal` it is the last thing that happens.
/// @param who names the actor in the log
/// @param on_breach hears of every breach; may be empty
[[nodiscard]] core::order_log
make_order_log(std::string who, order_checks mode,
               std::function<void(const core::order_breach&)> on_breach);

} // namespace kvtide
