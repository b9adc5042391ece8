// SPDX-License-Identifier: Apache-2.0

/// @file
/// How bytes that need not be UTF-8 travel in JSON.

#pragma once

#include <string>
#include <string_view>

namespace serve {

/// Returns `bytes` as the inside of a JSON string, without its quotes: each
/// byte stands for the code point with its number, U+0000 to U+00FF, and
/// everything that is not printable ASCII is written as an escape. A client
/// gets the bytes back by encoding the string as Latin-1, whatever they are,
/// also where a piece of a stream ends in the middle of a character.
[[nodiscard]] std::string to_json_text(std::string_view bytes);

} // namespace serve
