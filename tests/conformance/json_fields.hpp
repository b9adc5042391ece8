// SPDX-License-Identifier: Apache-2.0

/// @file
/// Strict reading of JSON values: a field that nobody asked for is an error, as
/// is a missing one or one of another type.

#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvtide::conformance {

using json = nlohmann::json;

/// What is wrong with a line. Thrown and caught inside the reader only.
struct unreadable {
  std::string what;
};

/// Parses one line of text. Throws `unreadable` if it is not exactly one JSON
/// object, or if an object in it names a field twice.
[[nodiscard]] json parse_object(const std::string& text);

/// Each `to_` function throws `unreadable` with `where` in its text.
[[nodiscard]] std::int64_t to_number(const json& value,
                                     const std::string& where, std::int64_t min,
                                     std::int64_t max);
[[nodiscard]] bool to_truth(const json& value, const std::string& where);
[[nodiscard]] const std::string& to_text(const json& value,
                                         const std::string& where);
[[nodiscard]] const json& to_list(const json& value, const std::string& where);

/// Calls `convert(element, where)` for each element of a list.
template <class Convert>
[[nodiscard]] auto to_each(const json& value, const std::string& where,
                           Convert convert) {
  using element = decltype(convert(value, where));
  auto result = std::vector<element>{};
  result.reserve(to_list(value, where).size());
  for (const auto& item : value)
    result.push_back(
      convert(item, where + '[' + std::to_string(result.size()) + ']'));
  return result;
}

/// Reads one JSON object field by field; see `finish`.
class fields {
public:
  /// @param where names the object in messages; empty for a whole line
  /// @pre `object` outlives this
  fields(const json& object, std::string where);

  /// A field that must be there.
  [[nodiscard]] const json& at(std::string_view name);

  /// A field that may be absent: null then.
  [[nodiscard]] const json* find(std::string_view name);

  [[nodiscard]] std::int64_t number(std::string_view name, std::int64_t min,
                                    std::int64_t max) {
    return to_number(at(name), path(name), min, max);
  }

  [[nodiscard]] bool truth(std::string_view name) {
    return to_truth(at(name), path(name));
  }

  [[nodiscard]] const std::string& text(std::string_view name) {
    return to_text(at(name), path(name));
  }

  template <class Convert>
  [[nodiscard]] auto each(std::string_view name, Convert convert) {
    return to_each(at(name), path(name), std::move(convert));
  }

  /// How messages name a field.
  [[nodiscard]] std::string path(std::string_view name) const;

  /// Throws if the object has a field that was not asked for.
  void finish() const;

private:
  const json& object_;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
};

} // namespace kvtide::conformance
