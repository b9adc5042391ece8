// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/want.hpp"

#include "tests/conformance/key_text.hpp"

#include <algorithm>

namespace kvtide::conformance {

json want_numbers(const json& value, const std::string& where,
                  std::int64_t max) {
  return to_each(value, where, [max](const json& item, const std::string& at) {
    return to_number(item, at, 0, max);
  });
}

json want_number_set(const json& value, const std::string& where,
                     std::int64_t max) {
  return sorted(want_numbers(value, where, max));
}

json want_pairs(const json& value, const std::string& where,
                std::int64_t max_first, std::int64_t max_second) {
  return sorted(
    to_each(value, where, [&](const json& item, const std::string& at) {
      if (to_list(item, at).size() != 2)
        throw unreadable{'\'' + at + "' is not a pair"};
      return json{to_number(item[0], at, 0, max_first),
                  to_number(item[1], at, 0, max_second)};
    }));
}

json want_keys(const json& value, const std::string& where,
               std::size_t groups) {
  return to_each(value, where,
                 [groups](const json& item, const std::string& at) {
                   return key_text(to_key(item, at, groups, 0));
                 });
}

json want_events(const json& value, const std::string& where,
                 std::size_t groups) {
  return to_each(
    value, where, [groups](const json& item, const std::string& at) {
      auto event = fields{item, at};
      auto result = json::object();
      if (const auto* keys = event.find("stored"))
        result["stored"]
          = sorted(want_keys(*keys, event.path("stored"), groups));
      if (const auto* keys = event.find("removed"))
        result["removed"] = want_keys(*keys, event.path("removed"), groups);
      event.finish();
      if (result.size() != 1)
        throw unreadable{'\'' + at + "' is neither stored nor removed"};
      return result;
    });
}

json events_text(const std::vector<cache_event>& events) {
  auto result = json::array();
  for (const auto& event : events) {
    if (event.kind == cache_event::kind_t::removed) {
      result.push_back({{"removed", key_texts(event.removed)}});
      continue;
    }
    auto keys = json::array();
    for (const auto& chunk : event.stored)
      keys.push_back(key_text(chunk.key));
    result.push_back({{"stored", sorted(std::move(keys))}});
  }
  return result;
}

json sorted(json list) {
  std::sort(list.begin(), list.end());
  return list;
}

} // namespace kvtide::conformance
