// SPDX-License-Identifier: Apache-2.0

/// @file
/// Plans as hazards are told: `S0{R#0<-1}` stores chunk 0 of R from block 1,
/// `L1{P#0/1->4}` loads one of group 1.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"
#include "kvtide/key.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <type_traits>

namespace kvtide::test {

/// A letter if it is one, else the number.
[[nodiscard]] std::string name_of(request_id id);

[[nodiscard]] std::string name_of(job_kind kind, job_id id);

template <class Range>
[[nodiscard]] std::string joined(const Range& what, const char* between) {
  auto out = std::string{};
  for (const auto& x : what) {
    out += out.empty() ? "" : between;
    if constexpr (std::is_convertible_v<decltype(x), std::string>)
      out += x;
    else
      out += std::to_string(x);
  }
  return out;
}

/// "[4 5]"
template <class Range>
[[nodiscard]] std::string listed(const Range& what) {
  auto out = std::string{"["};
  out += joined(what, " ");
  out += "]";
  return out;
}

/// Knows the names of chunks.
class plan_text {
public:
  /// With one group, its number is left out.
  explicit plan_text(std::size_t groups) : groups_(groups) {
    // nop
  }

  [[nodiscard]] std::string chunk(request_id id, group_id group,
                                  std::size_t chunk) const;

  [[nodiscard]] std::string chunk(const job& work, const job_row& row) const;

  /// From now on the key is called after this chunk, unless it has a name.
  void remember(const chunk_key& key, request_id id, std::size_t chunk);

  /// "?" for keys without a name.
  [[nodiscard]] std::string key(const chunk_key& key) const;

  [[nodiscard]] std::string of(const job& work) const;

  /// "-" for a plan without jobs.
  [[nodiscard]] std::string of(const step_plan& plan) const;

private:
  std::size_t groups_;
  std::map<chunk_key, std::string> names_;
};

} // namespace kvtide::test
