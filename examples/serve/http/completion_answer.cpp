// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/completion_answer.hpp"

#include "examples/serve/http/byte_text.hpp"
#include "examples/serve/http/http_answer.hpp"

#include <array>
#include <cassert>
#include <charconv>

namespace serve {

namespace {

// Everything up to the text of the only choice.
std::string open_object(const completion_head& head) {
  auto out = std::string{R"({"id":"cmpl-)"};
  out += std::to_string(head.number);
  out += R"(","object":"text_completion","created":)";
  out += std::to_string(head.created);
  out += R"(,"model":"kvtide-serve","choices":[{"index":0,"text":")";
  return out;
}

std::string usage(const completion_head& head, std::uint64_t tokens) {
  return R"("usage":{"prompt_tokens":)" + std::to_string(head.prompt_tokens)
       + R"(,"completion_tokens":)" + std::to_string(tokens)
       + R"(,"total_tokens":)" + std::to_string(head.prompt_tokens + tokens)
       + "}";
}

constexpr auto close_choice = R"(","logprobs":null,"finish_reason":)";

std::string to_event(std::string_view data) {
  auto out = std::string{"data: "};
  out += data;
  out += "\n\n";
  return out;
}

} // namespace

std::string completion_json(const completion_head& head,
                            std::string_view text) {
  return open_object(head) + to_json_text(text) + close_choice
       + R"("length"}],)" + usage(head, text.size()) + "}\n";
}

std::string piece_event(const completion_head& head, std::string_view text) {
  return to_event(open_object(head) + to_json_text(text) + close_choice
                  + "null}]}");
}

std::string end_events(const completion_head& head,
                       std::uint64_t completion_tokens) {
  return to_event(open_object(head) + close_choice + R"("length"}],)"
                  + usage(head, completion_tokens) + "}")
       + to_event("[DONE]");
}

std::string error_event(std::string_view code, std::string_view message) {
  return to_event(error_json(code, message));
}

std::string to_chunk(std::string_view content) {
  assert(!content.empty());
  auto size = std::array<char, 16>{};
  const auto [end, failure]
    = std::to_chars(size.data(), size.data() + size.size(), content.size(), 16);
  assert(failure == std::errc{});
  auto out = std::string{size.data(), end};
  out += "\r\n";
  out += content;
  out += "\r\n";
  return out;
}

} // namespace serve
