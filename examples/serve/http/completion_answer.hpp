// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a completion looks like on its way to the client: one JSON object, or a
/// server-sent event per piece.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace serve {

/// What all pieces of one answer share.
struct completion_head {
  /// Number of the answer since the start; `id` is made of it.
  std::uint64_t number = 0;
  /// Seconds since 1970.
  std::int64_t created = 0;
  std::uint64_t prompt_tokens = 0;
};

/// The whole answer, of `text.size()` tokens.
[[nodiscard]] std::string completion_json(const completion_head& head,
                                          std::string_view text);

/// The event of one piece: `data: ..` and an empty line.
[[nodiscard]] std::string piece_event(const completion_head& head,
                                      std::string_view text);

/// The last events of an answer that is complete: a piece without text, but
/// with the finish reason and the usage, then `data: [DONE]`.
[[nodiscard]] std::string end_events(const completion_head& head,
                                     std::uint64_t completion_tokens);

/// The last event of an answer that was cut off; no `[DONE]` follows.
[[nodiscard]] std::string error_event(std::string_view code,
                                      std::string_view message);

/// One chunk of a body with the transfer encoding "chunked".
/// @pre `!content.empty()`, as an empty chunk is the end
[[nodiscard]] std::string to_chunk(std::string_view content);

/// What ends such a body.
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

} // namespace serve
