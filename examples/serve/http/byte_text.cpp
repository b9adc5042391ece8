// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/byte_text.hpp"

namespace serve {

std::string to_json_text(std::string_view bytes) {
  constexpr auto digits = std::string_view{"0123456789abcdef"};
  auto out = std::string{};
  out.reserve(bytes.size() + 16);
  for (const auto letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += letter;
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += letter;
    } else {
      out += "\\u00";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

} // namespace serve
