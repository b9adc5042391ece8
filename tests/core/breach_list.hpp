// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/job.hpp"

#include "core/order_log.hpp"

#include <string>
#include <utility>
#include <vector>

namespace kvtide::core {

/// An order log whose breaches a test reads, e.g. "S8 slot 3 ...".
class breach_list {
public:
  order_log log{{}, [this](const order_breach& x) {
                  texts_.push_back(to_string(x.rule) + " " + x.text);
                }};

  breach_list() = default;
  breach_list(const breach_list&) = delete;
  breach_list& operator=(const breach_list&) = delete;

  /// Those since the last call.
  [[nodiscard]] std::vector<std::string> take() {
    return std::exchange(texts_, {});
  }

private:
  std::vector<std::string> texts_;
};

/// One row per slot; row i copies block `first_block + i`.
[[nodiscard]] inline job job_on(job_id id, job_kind kind,
                                const std::vector<slot_id>& slots,
                                block_id first_block = 1) {
  auto rows = std::vector<job_row>{};
  for (const auto slot : slots) {
    auto row = job_row{};
    row.slot = slot;
    row.blocks = {first_block++};
    rows.push_back(std::move(row));
  }
  return {id, kind, 0, std::move(rows)};
}

} // namespace kvtide::core
