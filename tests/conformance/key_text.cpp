// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/key_text.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace kvtide::conformance {

namespace {

constexpr auto digits = std::string_view{"0123456789abcdef"};

prefix_hash parse_hash(std::string_view text, const std::string& where) {
  auto bytes = std::array<std::uint8_t, prefix_hash::max_bytes>{};
  const auto size = text.size() / 2;
  auto good = text.size() % 2 == 0 && size > 0 && size <= bytes.size();
  for (std::size_t i = 0; good && i < size; ++i) {
    const auto* first = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(first, first + 2, bytes[i], 16);
    good = error == std::errc{} && end == first + 2;
  }
  if (!good)
    throw unreadable{'\'' + where + "' is not a hash of 1 to 64 bytes in hex"};
  return {bytes.data(), size};
}

} // namespace

prefix_hash to_hash(const json& value, const std::string& where) {
  return parse_hash(to_text(value, where), where);
}

chunk_key to_key(const json& value, const std::string& where,
                 std::size_t groups, std::uint64_t model) {
  const auto text = std::string_view{to_text(value, where)};
  const auto slash = text.find('/');
  auto group = group_id{0};
  auto good = slash != std::string_view::npos && slash + 1 < text.size();
  if (good) {
    const auto* last = text.data() + text.size();
    const auto [end, error]
      = std::from_chars(text.data() + slash + 1, last, group);
    good = error == std::errc{} && end == last;
  }
  if (!good)
    throw unreadable{'\'' + where + "' is not a key \"hash/group\""};
  if (group >= groups)
    throw unreadable{'\'' + where + "' names group " + std::to_string(group)
                     + " of " + std::to_string(groups)};
  return {parse_hash(text.substr(0, slash), where), group, model};
}

std::string key_text(const chunk_key& key) {
  auto text = std::string{};
  for (std::size_t i = 0; i < key.hash.size(); ++i) {
    text += digits[key.hash.data()[i] >> 4];
    text += digits[key.hash.data()[i] & 15];
  }
  return text + '/' + std::to_string(key.group);
}

json key_texts(std::span<const chunk_key> keys) {
  auto result = json::array();
  for (const auto& key : keys)
    result.push_back(key_text(key));
  return result;
}

} // namespace kvtide::conformance
