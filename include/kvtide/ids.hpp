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

/// A cap that caps nothing.
inline constexpr token_count no_cap = std::numeric_limits<token_count>::max();

/// A moment or a span in nanoseconds on the runtime's clock.
using nanoseconds_t = std::int64_t;

} // namespace kvtide
