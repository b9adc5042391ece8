// SPDX-License-Identifier: Apache-2.0

#include "tests/serve/leftovers.hpp"

#include <cstddef>
#include <cstdint>

namespace serve::test {

std::vector<std::string> left_over(const engine_stats& last) {
  auto res = std::vector<std::string>{};
  const auto expect_none = [&res](std::uint64_t count, const char* what) {
    if (count != 0)
      res.push_back(std::to_string(count) + ' ' + what);
  };
  expect_none(last.waiting + last.loading + last.running,
              "requests in the engine");
  expect_none(last.held_blocks, "blocks that wait for a late copy");
  expect_none(last.device_blocks - last.free_blocks, "blocks in use");
  const auto& cache = last.cache;
  expect_none(cache.tracked_requests, "requests that the cache tracks");
  expect_none(cache.jobs_in_flight, "jobs in flight");
  expect_none(cache.pinned_slots, "pinned slots");
  expect_none(cache.held_slots, "held slots");
  expect_none(cache.writing_slots, "slots that are being written");
  expect_none(cache.quarantined_slots, "slots that wait for a late copy");
  for (auto rule = std::size_t{0}; rule < cache.order_errors_by_rule.size();
       ++rule)
    expect_none(cache.order_errors_by_rule[rule]
                  + last.rank.order_errors_by_rule[rule],
                ("breaches of S" + std::to_string(rule)).c_str());
  if (last.refused_calls != 0)
    res.push_back("calls were refused: " + last.last_trouble);
  return res;
}

} // namespace serve::test
