// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/key.hpp"

#include "tests/conformance/json_fields.hpp"

#include <span>
#include <string>

namespace kvtide::conformance {

/// Hash in hex, as the vectors spell it. Throws `unreadable`.
[[nodiscard]] prefix_hash to_hash(const json& value, const std::string& where);

/// "hash/group". Throws `unreadable` if the group is not below `groups`.
[[nodiscard]] chunk_key to_key(const json& value, const std::string& where,
                               std::size_t groups, std::uint64_t model);

/// The way back: lower case.
[[nodiscard]] std::string key_text(const chunk_key& key);

/// A JSON list of key texts.
[[nodiscard]] json key_texts(std::span<const chunk_key> keys);

} // namespace kvtide::conformance
