// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <tsl/robin_map.h>

#include <cstddef>
#include <vector>

namespace kvtide::core {

/// Which store jobs read a block that may be handed to somebody else (FEN-01).
/// A block that is allocated while it is watched puts those jobs into the
/// step's flush set.
class reuse_watch {
public:
  /// Naming a pair twice is the same as once (FEN-03).
  void add(block_id block, job_id job);

  /// A pair that is not there is ignored.
  void remove(block_id block, job_id job);

  /// @returns the jobs that read `block`, or null
  [[nodiscard]] const std::vector<job_id>* jobs(block_id block) const;

  [[nodiscard]] std::size_t size() const noexcept {
    return jobs_.size();
  }

  /// Ascending.
  [[nodiscard]] std::vector<block_id> blocks() const;

  void clear() {
    jobs_.clear();
  }

private:
  tsl::robin_map<block_id, std::vector<job_id>> jobs_;
};

} // namespace kvtide::core
