// SPDX-License-Identifier: Apache-2.0

#include "tests/support/plan_text.hpp"

#include <vector>

namespace kvtide::test {

std::string name_of(request_id id) {
  return id >= '!' && id <= '~' ? std::string(1, static_cast<char>(id))
                                : std::to_string(id);
}

std::string name_of(job_kind kind, job_id id) {
  auto out = std::string{kind == job_kind::store ? "S" : "L"};
  out += std::to_string(id);
  return out;
}

std::string plan_text::chunk(request_id id, group_id group,
                             std::size_t chunk) const {
  auto out = name_of(id) + "#" + std::to_string(chunk);
  return groups_ > 1 ? out + "/" + std::to_string(group) : out;
}

std::string plan_text::chunk(const job& work, const job_row& row) const {
  return chunk(work.request, row.key.group, row.chunk);
}

void plan_text::remember(const chunk_key& key, request_id id,
                         std::size_t chunk) {
  names_.emplace(key, this->chunk(id, key.group, chunk));
}

std::string plan_text::key(const chunk_key& key) const {
  const auto found = names_.find(key);
  return found != names_.end() ? found->second : "?";
}

std::string plan_text::of(const job& work) const {
  auto parts = std::vector<std::string>{};
  for (const auto& row : work.rows)
    parts.push_back(
      chunk(work, row) + (work.kind == job_kind::store ? "<-" : "->")
      + (row.blocks.size() == 1 ? std::to_string(row.blocks.front())
                                : listed(row.blocks)));
  return name_of(work.kind, work.id) + "{" + joined(parts, ",") + "}";
}

std::string plan_text::of(const step_plan& plan) const {
  auto parts = std::vector<std::string>{};
  for (const auto& work : plan.loads)
    parts.push_back(of(work));
  for (const auto& work : plan.stores)
    parts.push_back(of(work));
  if (!plan.flush.empty())
    parts.push_back("flush{" + joined(plan.flush, ",") + "}");
  return parts.empty() ? "-" : joined(parts, " ");
}

} // namespace kvtide::test
