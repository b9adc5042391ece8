// SPDX-License-Identifier: Apache-2.0

#include "core/order_log.hpp"

namespace kvtide::core {

std::string to_string(order_rule rule) {
  if (rule == order_rule::call)
    return "call";
  auto out = std::string{'S'};
  out += std::to_string(static_cast<int>(rule));
  return out;
}

void order_log::breach(order_rule rule, std::string_view kind,
                       const std::string& detail) {
  count(rule);
  auto what = order_breach{rule, std::string{kind}};
  if (!detail.empty())
    what.text += ": " + detail;
  if (told_.insert(kind).second && on_first_)
    on_first_(what);
  if (on_breach_)
    on_breach_(what);
}

} // namespace kvtide::core
