// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/order_log.hpp"

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>

namespace kvtide::core {

/// Checks that a request lives until its tail was planned and its last job has
/// an outcome, and not a message longer (S2).
class life_check {
public:
  explicit life_check(order_log& log) : log_(log) {
    // nop
  }

  void added(request_id id) {
    lives_[id] = {};
  }

  /// A plan had its tail.
  void planned(request_id id);

  void job_started(request_id id);

  /// One of its jobs has an outcome.
  void job_settled(request_id id);

  /// Its state is gone.
  void dropped(request_id id);

  /// All jobs are forgotten.
  void reset();

  /// A reset ended it: nobody waits for its tail any more.
  void forgotten(request_id id);

  /// An item of the scheduler's queue is over.
  void item_over() {
    if (over_ > told_)
      complain_of_rest();
  }

private:
  struct life {
    bool planned = false;
    std::uint32_t jobs = 0;

    [[nodiscard]] bool over() const noexcept {
      return planned && jobs == 0;
    }
  };

  life take(tsl::robin_map<request_id, life>::iterator i);

  void complain_of_rest();

  order_log& log_;
  tsl::robin_map<request_id, life> lives_;
  /// Requests that nothing keeps alive.
  std::size_t over_ = 0;
  /// Those among them that were complained of.
  std::size_t told_ = 0;
};

} // namespace kvtide::core
