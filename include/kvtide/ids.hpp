// SPDX-License-Identifier: Apache-2.0

/// @file
/// The small numbers that calls, messages and jobs are made of.

#pragma once

#include <cstdint>
#include <limits>

namespace kvtide {

/// Chosen by the engine; unique among requests that are still tracked.
using request_id = std::uint64_t;

/// A KV block in GPU memory, one number space for all groups. Zero is the
/// placeholder ("hole") and never names memory.
using block_id = std::uint32_t;

/// A block id that names no memory.
inline constexpr block_id no_block = 0;

/// A chunk-sized place in the host pool, counted from zero.
using slot_id = std::uint32_t;

/// Ascending from zero, one counter for loads and stores, never reused.
using job_id = std::uint64_t;

/// One turn of the engine; the engine counts them up by one.
using step_id = std::uint64_t;

/// One GPU worker of a tensor-parallel group, counted from zero.
using rank_id = std::uint32_t;

/// Index of a KV group in `options::groups`.
using group_id = std::uint32_t;

/// What a lookup holds in the host pool until it is used or declined. Zero
/// means that nothing is held.
using promise_id = std::uint64_t;

/// Pairs an answer or an error with the call that caused it.
using ticket_id = std::uint64_t;

/// Tells two lives of the same rank apart.
using incarnation_id = std::uint32_t;

/// A number of tokens, or a position among a request's tokens. Signed, so that
/// differences are safe; a negative value in a call is refused.
using token_count = std::int64_t;

/// The longest request. A larger number in a call is refused, so that sums of
/// token counts cannot overflow.
inline constexpr token_count max_tokens = token_count{1} << 40;

/// What a call may say, except of a cap.
[[nodiscard]] constexpr bool is_token_count(token_count tokens) noexcept {
  return tokens >= 0 && tokens <= max_tokens;
}

/// A cap that caps nothing.
inline constexpr token_count no_cap = std::numeric_limits<token_count>::max();

/// A moment or a span in nanoseconds on the runtime's clock.
using nanoseconds_t = std::int64_t;

/// A moment that does not come.
inline constexpr nanoseconds_t never
  = std::numeric_limits<nanoseconds_t>::max();

/// Adds without overflow; nothing is later than `never`.
/// @pre `span >= 0`
[[nodiscard]] constexpr nanoseconds_t later_by(nanoseconds_t moment,
                                               nanoseconds_t span) noexcept {
  return moment > never - span ? never : moment + span;
}

} // namespace kvtide
