// SPDX-License-Identifier: Apache-2.0

/// @file
/// Parts of expected answers that several levels have in common. Each function
/// checks a value and returns it in the form in which answers are compared.

#pragma once

#include "kvtide/cache_event.hpp"

#include "tests/conformance/json_fields.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::conformance {

/// Numbers from zero on, in the order given.
[[nodiscard]] json want_numbers(const json& value, const std::string& where,
                                std::int64_t max);

/// The same, ascending: for what the vectors call a set.
[[nodiscard]] json want_number_set(const json& value, const std::string& where,
                                   std::int64_t max);

/// Pairs of numbers, sorted.
[[nodiscard]] json want_pairs(const json& value, const std::string& where,
                              std::int64_t max_first, std::int64_t max_second);

/// Keys in the order given.
[[nodiscard]] json want_keys(const json& value, const std::string& where,
                             std::size_t groups);

/// The list of `take_events`; the keys of a `stored` event are sorted.
[[nodiscard]] json want_events(const json& value, const std::string& where,
                               std::size_t groups);

/// What a runtime answered to `take_events`, in the same form.
[[nodiscard]] json events_text(const std::vector<cache_event>& events);

/// @returns `list` with its elements in ascending order
[[nodiscard]] json sorted(json list);

} // namespace kvtide::conformance
