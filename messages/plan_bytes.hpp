// SPDX-License-Identifier: Apache-2.0

/// @file
/// A rank's plan as opaque bytes, for engines that carry it to their ranks with
/// a message of their own.

#pragma once

#include "kvtide/result.hpp"

#include "messages/gpu_worker.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace kvtide {

/// What a rank has to do for one step.
struct rank_plan {
  msg::begin_step begin;
  msg::stores stores;
  /// `joined::epoch` of the scheduler that planned it; 0 if it has no ranks in
  /// other processes.
  std::uint64_t epoch = 0;
};

/// Longer plans are refused unread.
inline constexpr std::size_t max_plan_bytes = std::size_t{64} * 1024 * 1024;

/// The same messages give the same bytes on each call.
[[nodiscard]] std::string encode_plan(const msg::begin_step& begin,
                                      const msg::stores& stores,
                                      std::uint64_t epoch = 0);

/// Reads what `encode_plan` wrote, in this or another process. Memory use is
/// bounded by the length of `bytes`.
/// @returns `ec::invalid_argument` with a sentence if the bytes are damaged,
///          were cut, or contradict themselves, `ec::unsupported` if another
///          version wrote them.
[[nodiscard]] result<rank_plan> decode_plan(const std::string& bytes);

} // namespace kvtide
