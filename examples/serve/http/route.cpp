// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/route.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace serve {

namespace {

http_answer wrong_method(std::string_view path, std::string allow) {
  auto out = make_error(405, "method_not_allowed",
                        std::string{path} + " answers " + allow + " only.");
  out.allow = std::move(allow);
  return out;
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32)
                                        : letter;
}

bool same_but_case(std::string_view given, std::string_view wanted) {
  return std::equal(given.begin(), given.end(), wanted.begin(), wanted.end(),
                    [](char lhs, char rhs) { return lower(lhs) == rhs; });
}

// Whether a Content-Type says JSON, its parameters aside. Without one there is
// nothing to contradict.
bool is_json(std::string_view content_type) {
  auto type = content_type.substr(0, content_type.find(';'));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t'))
    type.remove_suffix(1);
  return type.empty() || same_but_case(type, "application/json");
}

// The path in a target in absolute form, which a server must take as well (RFC
// 9112, 3.2.2), or in origin form. Which host is named makes no difference
// here, as there is one.
std::string_view path_of(std::string_view target) {
  for (const auto scheme :
       {std::string_view{"http://"}, std::string_view{"https://"}})
    if (same_but_case(target.substr(0, scheme.size()), scheme)) {
      const auto rest = target.substr(scheme.size());
      const auto host = std::min(rest.find_first_of("/?"), rest.size());
      if (host > 0)
        target = rest.substr(host);
      break;
    }
  return target.substr(0, target.find('?'));
}

} // namespace

routed_call route(const request_head& head, std::string_view body,
                  const completion_limits& limits) {
  const auto path = path_of(head.target);
  const auto reads = head.method == "GET" || head.method == "HEAD";
  if (path == "/healthz") {
    if (reads)
      return health_call{};
    return wrong_method(path, "GET, HEAD");
  }
  if (path == "/metrics") {
    if (reads)
      return metrics_call{};
    return wrong_method(path, "GET, HEAD");
  }
  if (path != "/v1/completions")
    return make_error(404, "not_found",
                      "Nothing is here; there are POST /v1/completions, GET "
                      "/metrics and GET /healthz.");
  if (head.method != "POST")
    return wrong_method(path, "POST");
  if (!is_json(head.content_type))
    return make_error(415, "not_json",
                      "The body must be JSON; send it with the header "
                      "'Content-Type: application/json'.");
  auto call = read_completion_body(body, limits);
  if (auto* failure = std::get_if<http_answer>(&call))
    return std::move(*failure);
  return std::get<completion_call>(std::move(call));
}

} // namespace serve
