// SPDX-License-Identifier: Apache-2.0

/// @file
/// Which of the server's pages a request means.

#pragma once

#include "examples/serve/http/completion_body.hpp"
#include "examples/serve/http/http_answer.hpp"

#include <string_view>
#include <variant>

namespace serve {

/// `GET /metrics`
struct metrics_call {};
/// `GET /healthz`
struct health_call {};

/// What a client wants, or why it cannot have it.
using routed_call
  = std::variant<completion_call, metrics_call, health_call, http_answer>;

/// The part of a request that decides.
struct request_head {
  /// In upper case, as it was sent.
  std::string_view method;
  /// Path and query, in absolute form with a host before them; host and query
  /// are ignored.
  std::string_view target;
  /// Value of Content-Type; empty if there is none.
  std::string_view content_type;
};

/// @returns a call; or an answer with status 404 if nothing is at this path,
///          405 if it is, but not for this method, 415 if a completion is asked
///          for in something that calls itself other than JSON, or what
///          `read_completion_body` says
[[nodiscard]] routed_call route(const request_head& head, std::string_view body,
                                const completion_limits& limits);

} // namespace serve
