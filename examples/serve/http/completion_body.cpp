// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/completion_body.hpp"

#include <nlohmann/json.hpp>

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace serve {

namespace {

using nlohmann::json;

constexpr auto known_fields
  = "prompt, max_tokens, stream, cache_salt, model, user, temperature and n";

http_answer unprocessable(std::string_view code, const std::string& message) {
  return make_error(422, code, message);
}

http_answer wrong_field(std::string_view field, const std::string& rule) {
  auto text = std::string{"'"};
  text += field;
  text += "' must be ";
  return unprocessable("invalid_field", text + rule + ".");
}

http_answer not_an_object() {
  return unprocessable("not_an_object",
                       "The body must be an object, for example "
                       "{\"prompt\": \"Hello\"}.");
}

// Long names of a client's own come back cut short.
std::string short_name(const std::string& field) {
  return field.size() > 64 ? field.substr(0, 64) + "..." : field;
}

/// A body, as far as it was read, and what was wrong first.
struct reading {
  completion_call call;
  bool has_prompt = false;
  std::optional<http_answer> failure;
};

void read_prompt(const json& value, reading& to) {
  auto& prompt = to.call.request.prompt;
  if (value.is_string()) {
    prompt = value.get_ref<const std::string&>();
  } else if (value.is_array()) {
    for (const auto& token : value) {
      if (!token.is_number_unsigned() || token.get<std::uint64_t>() > 255) {
        to.failure = wrong_field("prompt", "a string, or a list of whole "
                                           "numbers from 0 to 255");
        return;
      }
      prompt += static_cast<char>(token.get<std::uint64_t>());
    }
  } else {
    to.failure = wrong_field("prompt", "a string, or a list of whole numbers "
                                       "from 0 to 255");
    return;
  }
  to.has_prompt = true;
}

void read_max_tokens(const json& value, const completion_limits& limits,
                     reading& to) {
  // A number of any size is compared before it is narrowed. Those beyond 64
  // bits are floating point here, and so refused.
  const auto most = static_cast<std::uint64_t>(limits.max_tokens) - 1;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1
      || value.get<std::uint64_t>() > most)
    to.failure = wrong_field("max_tokens", "a whole number from 1 to "
                                             + std::to_string(most));
  else
    to.call.request.max_tokens
      = static_cast<std::int32_t>(value.get<std::uint64_t>());
}

void read_field(const std::string& name, const json& value,
                const completion_limits& limits, reading& to) {
  if (name == "prompt") {
    read_prompt(value, to);
  } else if (name == "max_tokens") {
    read_max_tokens(value, limits, to);
  } else if (name == "stream") {
    if (value.is_boolean())
      to.call.stream = value.get<bool>();
    else
      to.failure = wrong_field(name, "true or false");
  } else if (name == "cache_salt") {
    if (value.is_string()
        && value.get_ref<const std::string&>().size() <= limits.salt_bytes)
      to.call.request.cache_salt = value.get_ref<const std::string&>();
    else
      to.failure
        = wrong_field(name, "a string of at most "
                              + std::to_string(limits.salt_bytes) + " bytes");
  } else if (name == "model" || name == "user") {
    if (!value.is_string())
      to.failure = wrong_field(name, "a string; it changes nothing");
  } else if (name == "temperature") {
    if (!value.is_number() || value.get<double>() != 0.0)
      to.failure = wrong_field(name, "0, as decoding is greedy");
  } else if (name == "n") {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() != 1)
      to.failure = wrong_field(name, "1, as all answers are the same");
  } else {
    to.failure
      = unprocessable("unknown_field", "There is no field '" + short_name(name)
                                         + "'; leave it out. Known "
                                           "are "
                                         + known_fields + ".");
  }
}

} // namespace

std::variant<completion_call, http_answer>
read_completion_body(std::string_view body, const completion_limits& limits) {
  // Of two fields with one name the parser keeps the last and says nothing.
  auto names = std::vector<std::set<std::string>>{};
  auto twice = std::optional<std::string>{};
  // Of the body itself, the last one that was seen.
  auto field = std::string{};
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start)
      names.emplace_back();
    else if (event == json::parse_event_t::object_end)
      names.pop_back();
    else if (event == json::parse_event_t::key) {
      const auto name = value.get<std::string>();
      if (depth == 1)
        field = name;
      if (!twice && !names.back().insert(name).second)
        twice = name;
    }
    return true;
  };
  auto parsed = json{};
  try {
    parsed = json::parse(body, watch);
  } catch (const json::out_of_range&) {
    // It is JSON, with a number beyond all that a field takes.
    auto to = reading{};
    if (!field.empty())
      read_field(field, json(std::numeric_limits<double>::infinity()), limits,
                 to);
    return to.failure ? *std::move(to.failure) : not_an_object();
  } catch (const json::exception&) {
    return make_error(400, "malformed_json",
                      "The body is not JSON in UTF-8; send one object, for "
                      "example {\"prompt\": \"Hello\"}.");
  }
  if (!parsed.is_object())
    return not_an_object();
  if (twice)
    return unprocessable("duplicate_field", "Field '" + short_name(*twice)
                                              + "' comes twice; send it once.");
  auto to = reading{};
  for (const auto& [name, value] : parsed.items()) {
    read_field(name, value, limits, to);
    if (to.failure)
      return *std::move(to.failure);
  }
  const auto& request = to.call.request;
  if (!to.has_prompt || request.prompt.empty())
    return unprocessable("no_prompt",
                         "There is no 'prompt', or it is empty; send at least "
                         "one byte.");
  const auto longest = static_cast<std::size_t>(limits.max_tokens)
                     - static_cast<std::size_t>(request.max_tokens);
  if (request.prompt.size() > longest)
    return unprocessable(
      "prompt_too_long",
      "The prompt has " + std::to_string(request.prompt.size())
        + " tokens (bytes), and with " + "max_tokens "
        + std::to_string(request.max_tokens) + " at most "
        + std::to_string(longest) + " fit; shorten it or ask for fewer.");
  return std::move(to.call);
}

} // namespace serve
