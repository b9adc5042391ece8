// SPDX-License-Identifier: Apache-2.0

#include "kvtide/error.hpp"

namespace kvtide {

const char* to_string(ec code) noexcept {
  switch (code) {
    case ec::none:
      return "none";
    case ec::invalid_options:
      return "invalid_options";
    case ec::invalid_argument:
      return "invalid_argument";
    case ec::unknown_request:
      return "unknown_request";
    case ec::duplicate_request:
      return "duplicate_request";
    case ec::out_of_order:
      return "out_of_order";
    case ec::unknown_promise:
      return "unknown_promise";
    case ec::out_of_memory:
      return "out_of_memory";
    case ec::rank_unavailable:
      return "rank_unavailable";
    case ec::device_failure:
      return "device_failure";
    case ec::timeout:
      return "timeout";
    case ec::unsupported:
      return "unsupported";
    case ec::shutting_down:
      return "shutting_down";
    case ec::scheduler_unreachable:
      return "scheduler_unreachable";
  }
  return "unknown error code";
}

} // namespace kvtide
