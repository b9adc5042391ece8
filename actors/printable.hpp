// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace kvtide {

/// What a peer says goes into a log line: short, and in print.
[[nodiscard]] inline std::string printable(std::string text) {
  constexpr std::size_t longest = 400;
  if (text.size() > longest)
    text.resize(longest);
  std::replace_if(
    text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

} // namespace kvtide
