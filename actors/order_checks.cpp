// SPDX-License-Identifier: Apache-2.0

#include "actors/order_checks.hpp"

#include "actors/log.hpp"

#include <cstdlib>
#include <utility>

namespace kvtide {

core::order_log
make_order_log(std::string who, order_checks mode,
               std::function<void(const core::order_breach&)> on_breach) {
  auto on_first = [who = std::move(who), mode](const core::order_breach& x) {
    log().error("{}: {} [{}]; further ones are only counted", who, x.text,
                core::to_string(x.rule));
    if (mode == order_checks::fatal && x.rule != core::order_rule::call) {
      log().flush();
      std::abort();
    }
  };
  return core::order_log{std::move(on_first), std::move(on_breach)};
}

} // namespace kvtide
