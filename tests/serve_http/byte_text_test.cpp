// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/byte_text.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace serve {
namespace {

// What a client does with a string from JSON: code points to bytes.
std::string to_latin_1(const std::string& utf8) {
  auto out = std::string{};
  for (auto i = std::size_t{0}; i < utf8.size(); ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    if (byte < 0x80) {
      out += utf8[i];
    } else {
      EXPECT_LE(byte, 0xc3) << "a code point beyond U+00FF";
      const auto next = static_cast<unsigned char>(utf8[++i]);
      out += static_cast<char>((byte & 3) << 6 | (next & 63));
    }
  }
  return out;
}

TEST(ByteText, GivesEveryByteBackThroughJson) {
  auto bytes = std::string{};
  for (auto byte = 0; byte < 256; ++byte)
    bytes += static_cast<char>(byte);
  const auto text = to_json_text(bytes);
  const auto parsed = nlohmann::json::parse("\"" + text + "\"");
  EXPECT_EQ(to_latin_1(parsed.get<std::string>()), bytes);
}

TEST(ByteText, IsPrintableAsciiOnly) {
  const auto text = to_json_text("a\"\\\n\x7f\xff");
  EXPECT_EQ(text, "a\\\"\\\\\\u000a\\u007f\\u00ff");
}

} // namespace
} // namespace serve
