// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "examples/replay/mix.hpp"
#include "examples/replay/sequence.hpp"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace kvtide::replay {

/// When clients give up.
enum class moment : std::uint8_t {
  /// Between two steps.
  before_plan,
  /// Right after blocks were allocated for a load.
  after_allocation,
  /// While the step that was just planned computes.
  after_issue,
};

/// Decides by chance which requests are aborted, in which phase and at which
/// moment. A request that never meets its phase is aborted while it decodes, or
/// not at all if it ends before.
class trouble {
public:
  /// @param rate Share of requests that are aborted, 0 to 1.
  trouble(std::uint64_t seed, double rate) : seed_(seed), rate_(rate) {
    // nop
  }

  /// Throws the dice for a new request.
  void consider(const sequence& seq);

  /// True if the request shall be aborted now. Counts as one moment of waiting
  /// in its phase.
  [[nodiscard]] bool strikes(const sequence& seq, moment when);

  /// Requests that may still be aborted, oldest first.
  [[nodiscard]] std::vector<request_id> doomed() const;

  void forget(request_id request);

private:
  struct doom {
    phase where = phase::queued;
    moment when = moment::before_plan;
    /// Moments to let pass.
    std::uint64_t patience = 0;
    /// Output tokens after which it is too late for `where`.
    token_count last_resort = 0;
  };

  std::uint64_t seed_;
  double rate_;
  std::vector<request_id> order_;
  std::unordered_map<request_id, doom> dooms_;
};

} // namespace kvtide::replay
