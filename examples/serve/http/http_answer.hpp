// SPDX-License-Identifier: Apache-2.0

/// @file
/// A whole answer, before it becomes bytes of HTTP.

#pragma once

#include <string>
#include <string_view>

namespace serve {

struct http_answer {
  /// Status code, 200 to 599.
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  /// Value of the header Allow; not sent if it is empty.
  std::string allow;
  /// Value of the header Retry-After in seconds; not sent if it is zero.
  unsigned retry_after = 0;
};

/// Returns an answer whose body is `{"error":{"message":..,"code":..}}`.
/// @param code One word for programs, e.g. "prompt_too_long".
/// @param message One sentence for people: what is wrong and what to do. Bytes
///                beyond ASCII are escaped, see `to_json_text`.
[[nodiscard]] http_answer make_error(unsigned status, std::string_view code,
                                     std::string_view message);

/// The JSON of `make_error` alone.
[[nodiscard]] std::string error_json(std::string_view code,
                                     std::string_view message);

} // namespace serve
