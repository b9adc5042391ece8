// SPDX-License-Identifier: Apache-2.0

/// @file
/// What a server asks of the engine, and what it hears.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace serve {

/// Names a request from `submit` on; never zero, never used again.
using completion_id = std::uint64_t;

/// Text that is to be continued.
struct completion_request {
  /// Bytes, each of which is a token; at least one.
  std::string prompt;
  /// Tokens, and so bytes, of the answer; at least one. There is no stop token:
  /// an answer that is not cut short has exactly this many.
  std::int32_t max_tokens = 16;
  /// Requests share cached KV only if their salts are equal. Has no influence
  /// on the answer.
  std::string cache_salt;
};

/// Why no more text comes.
enum class completion_end : std::uint8_t {
  /// The answer is complete.
  length,
  /// By `abort`, or because the engine stopped.
  aborted,
};

/// Who hears of a completion. Both may be empty. They are called on the
/// engine's thread, hold up all requests, and must return at once: hand over
/// what they bring and go.
struct completion_callbacks {
  /// One or more tokens, which need not be whole characters of any encoding.
  /// The bytes are gone when the call returns.
  std::function<void(std::string_view text)> on_text;
  /// Exactly once, last.
  std::function<void(completion_end why)> on_end;
};

} // namespace serve
