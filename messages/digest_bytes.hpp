// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvtide {

/// Digests of keys as they cross processes: eight bytes each, the lowest first.
[[nodiscard]] std::string bytes_of(std::span<const std::uint64_t> digests);

/// @returns none if `bytes` are no whole number of digests
[[nodiscard]] std::optional<std::vector<std::uint64_t>>
digests_of(const std::string& bytes);

} // namespace kvtide
