// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/json_fields.hpp"

#include <limits>

namespace kvtide::conformance {

namespace {

std::string in_quotes(std::string_view name) {
  return '\'' + std::string{name} + '\'';
}

[[noreturn]] void want(const char* kind, const json& value,
                       const std::string& where) {
  throw unreadable{in_quotes(where) + " is " + value.type_name() + ", want "
                   + kind};
}

} // namespace

json parse_object(const std::string& text) {
  auto names = std::vector<std::set<std::string>>{};
  auto watch = [&names](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start)
      names.emplace_back();
    else if (event == json::parse_event_t::object_end)
      names.pop_back();
    else if (event == json::parse_event_t::key
             && !names.back().insert(parsed.get<std::string>()).second)
      throw unreadable{"field " + in_quotes(parsed.get<std::string>())
                       + " is there twice"};
    return true;
  };
  try {
    auto value = json::parse(text, watch);
    if (!value.is_object())
      throw unreadable{std::string{"the line is "} + value.type_name()
                       + ", want an object"};
    return value;
  } catch (const json::exception& problem) {
    // Such as "[json.exception.parse_error.101] parse error at ...".
    auto what = std::string{problem.what()};
    const auto end = what.find("] ");
    throw unreadable{end == std::string::npos ? what : what.substr(end + 2)};
  }
}

std::int64_t to_number(const json& value, const std::string& where,
                       std::int64_t min, std::int64_t max) {
  if (!value.is_number_integer())
    want("an integer", value, where);
  const auto too_large
    = value.is_number_unsigned()
   && value.get<std::uint64_t>()
        > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto number = too_large ? max : value.get<std::int64_t>();
  if (too_large || number < min || number > max)
    throw unreadable{in_quotes(where) + " is " + value.dump() + ", want "
                     + std::to_string(min) + " to " + std::to_string(max)};
  return number;
}

bool to_truth(const json& value, const std::string& where) {
  if (!value.is_boolean())
    want("true or false", value, where);
  return value.get<bool>();
}

const std::string& to_text(const json& value, const std::string& where) {
  if (!value.is_string())
    want("a string", value, where);
  return value.get_ref<const std::string&>();
}

const json& to_list(const json& value, const std::string& where) {
  if (!value.is_array())
    want("a list", value, where);
  return value;
}

fields::fields(const json& object, std::string where)
  : object_(object), where_(std::move(where)) {
  if (!object.is_object())
    want("an object", object, where_);
}

const json& fields::at(std::string_view name) {
  if (const auto* value = find(name))
    return *value;
  throw unreadable{"no field " + in_quotes(path(name))};
}

const json* fields::find(std::string_view name) {
  asked_.emplace(name);
  const auto pos = object_.find(name);
  return pos == object_.end() ? nullptr : &*pos;
}

std::string fields::path(std::string_view name) const {
  return where_.empty() ? std::string{name} : where_ + '.' + std::string{name};
}

void fields::finish() const {
  for (const auto& [name, value] : object_.items())
    if (asked_.count(name) == 0)
      throw unreadable{"unknown field " + in_quotes(path(name))};
}

} // namespace kvtide::conformance
