// SPDX-License-Identifier: Apache-2.0

/// @file
/// How many clients the files that this process may have open are enough for.

#pragma once

#include "kvtide/result.hpp"

#include <cstddef>
#include <cstdint>

namespace serve {

/// Descriptors besides those of clients: the standard ones, the loop's, the
/// engine's, and some for what the libraries open.
inline constexpr auto other_files = std::uint64_t{32};

/// What to do about the limit of open files.
struct open_files_plan {
  /// The soft limit that is needed, never above the hard one.
  std::uint64_t soft = 0;
  /// What fits below that, at most what was wanted.
  std::size_t connections = 0;
};

/// @param soft, hard as `getrlimit` says them
/// @param connections at least 1
/// @returns `ec::invalid_options` if not even one client fits
[[nodiscard]] kvtide::result<open_files_plan>
plan_open_files(std::uint64_t soft, std::uint64_t hard,
                std::size_t connections);

/// Raises the soft limit of this process as far as `connections` clients need
/// it and the hard one lets it. Any thread, once.
/// @returns how many clients fit, at most `connections`; or
///          `ec::invalid_options` if none does
[[nodiscard]] kvtide::result<std::size_t>
allow_open_files(std::size_t connections);

} // namespace serve
