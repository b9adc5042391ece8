// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "bench/copy/batch.hpp"
#include "bench/copy/engine_owner.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace kvtide::bench {

/// Copies in a thread of its own, beside what is measured, until it is stopped.
class background_load {
public:
  /// What the thread and its starter tell one another.
  struct talk {
    std::atomic<bool> stop{false};
    /// Set once copies run as they will.
    std::atomic<bool> in_full_swing{false};
  };

  /// Copies until `stop`, then waits for what is under way.
  /// @returns bytes per second
  using body = std::function<result<double>(talk&)>;

  explicit background_load(body what);

  background_load(const background_load&) = delete;

  background_load& operator=(const background_load&) = delete;

  ~background_load();

  /// Waits until the copies are in full swing, or have failed.
  void wait();

  [[nodiscard]] result<double> stop();

private:
  talk talk_;
  std::atomic<bool> ended_{false};
  result<double> outcome_{0.0};
  std::thread thread_;
};

/// Enqueues the whole batch by one call, again and again, two of them at most
/// under way.
[[nodiscard]] background_load::body unsliced_batches(int device,
                                                     const batch& what);

/// Submits the jobs of the batch to an engine, in turn, so that on the average
/// so many bytes per second are asked for.
[[nodiscard]] background_load::body
paced_jobs(engine_owner& engine, const batch& what, double bytes_per_second);

} // namespace kvtide::bench
