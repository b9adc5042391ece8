// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the body of `POST /v1/completions` may say.

#pragma once

#include "examples/serve/engine/completion.hpp"
#include "examples/serve/http/http_answer.hpp"

#include <cstdint>
#include <string_view>
#include <variant>

namespace serve {

/// A body that makes sense.
struct completion_call {
  completion_request request;
  /// Answer with server-sent events, a piece of text each.
  bool stream = false;
};

/// Bounds of one request, in tokens, which are bytes.
struct completion_limits {
  /// Prompt and answer together, at least 2.
  std::int32_t max_tokens = 2'048;
  /// Of `cache_salt`.
  std::size_t salt_bytes = 256;
};

/// Reads a body. Fields:
///
/// * `prompt`, required: a string, whose tokens are the bytes of its UTF-8, or
///   a list of whole numbers from 0 to 255, which are the tokens
/// * `max_tokens`: a whole number, at least 1; 16 if it is absent
/// * `stream`: true or false
/// * `cache_salt`: a string
/// * `model`, `user`: strings that change nothing
/// * `temperature`: 0, `n`: 1; there is no other way here
///
/// Any other field, and a field that comes twice, is refused: an answer that
/// ignores what the client asked for is worse than none.
///
/// @returns status 400 if `body` is not JSON, 422 if it is, but not one of the
///          above or beyond `limits`
[[nodiscard]] std::variant<completion_call, http_answer>
read_completion_body(std::string_view body, const completion_limits& limits);

} // namespace serve
