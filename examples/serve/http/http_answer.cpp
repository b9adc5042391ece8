// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/http_answer.hpp"

#include "examples/serve/http/byte_text.hpp"

namespace serve {

std::string error_json(std::string_view code, std::string_view message) {
  auto out = std::string{R"({"error":{"message":")"};
  out += to_json_text(message);
  out += R"(","code":")";
  out += to_json_text(code);
  out += "\"}}";
  return out;
}

http_answer make_error(unsigned status, std::string_view code,
                       std::string_view message) {
  auto out = http_answer{};
  out.status = status;
  out.body = error_json(code, message) + "\n";
  return out;
}

} // namespace serve
