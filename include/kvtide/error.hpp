// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <string>

namespace kvtide {

/// Every way an operation of this library can fail. Numeric values are stable:
/// new codes go to the end, old ones are never reused.
enum class ec : std::uint8_t {
  /// Not an error; never stored in a failed result.
  none = 0,
  /// An option is missing, out of range, or contradicts another one.
  invalid_options,
  /// An argument of a call is out of range, or a list names something twice.
  invalid_argument,
  /// The request id is not known: never added, or already forgotten.
  unknown_request,
  /// A request with this id is still tracked.
  duplicate_request,
  /// A call or a message came out of the order that the protocol asks for.
  out_of_order,
  /// The promise was used, declined or has expired.
  unknown_promise,
  /// The machine or the device has not enough memory.
  out_of_memory,
  /// A rank has not registered its memory yet, or its process is gone.
  rank_unavailable,
  /// A copy failed on the device.
  device_failure,
  /// A deadline passed.
  timeout,
  /// This build or this configuration cannot do what was asked.
  unsupported,
  /// The runtime is stopping or has stopped.
  shutting_down,
  /// Nothing failed: a rank in another process than its scheduler goes on
  /// without the cache until the scheduler is back.
  scheduler_unreachable,
};

/// Returns the enumerator's name, e.g. "unknown_request". Never null.
[[nodiscard]] const char* to_string(ec code) noexcept;

/// A code, and one sentence that says what is wrong and what to do.
struct error {
  ec code = ec::none;
  std::string text;
};

} // namespace kvtide
