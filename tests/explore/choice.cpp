// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/choice.hpp"

#include <sstream>

namespace kvtide::explore {

namespace {

/// No run has more decisions than this.
constexpr std::size_t longest = 1'000'000;

} // namespace

std::string to_text(const schedule& picks) {
  auto out = std::ostringstream{};
  const auto* between = "";
  for (std::size_t i = 0; i < picks.size(); ++i) {
    if (picks[i] == 0)
      continue;
    out << between << i << ':' << picks[i];
    between = " ";
  }
  return out.str();
}

bool from_text(const std::string& text, schedule& picks) {
  picks.clear();
  auto words = std::istringstream{text};
  for (std::string word; words >> word;) {
    auto at = std::size_t{0};
    auto colon = '\0';
    auto pick = std::uint32_t{0};
    auto parts = std::istringstream{word};
    if (word.find_first_not_of("0123456789:") != std::string::npos
        || !(parts >> at >> colon >> pick) || colon != ':' || !parts.eof()
        || at >= longest)
      return false;
    if (picks.size() <= at)
      picks.resize(at + 1, 0);
    picks[at] = pick;
  }
  return true;
}

} // namespace kvtide::explore
