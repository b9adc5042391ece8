// SPDX-License-Identifier: Apache-2.0

/// @file
/// Drives a copy engine in tests as a device actor would, on either clock.

#pragma once

#include "gpu/host_copy_engine.hpp"
#include "gpu/wake_signal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::gpu {

/// An engine, its owner's loop, and what it reported so far.
class engine_rig {
public:
  static constexpr std::chrono::milliseconds patience{20'000};

  explicit engine_rig(host_engine_config config) {
    config.wake = [this] { wake_.set(); };
    config_ = std::move(config);
  }

  virtual ~engine_rig() = default;

  copy_engine& engine() {
    return *engine_;
  }

  virtual void destroy_engine() {
    engine_.reset();
  }

  void submit(copy_job job) {
    ASSERT_EQ(engine_->submit(std::move(job)), ec::none);
  }

  /// As a compute stream does that is told to wait at once: what comes back is
  /// for `open`.
  virtual std::optional<fence> make_fence(step_id step,
                                          const std::vector<job_id>& jobs) {
    return engine_->make_fence(step, jobs);
  }

  /// Makes an event that `end_compute` completes.
  virtual compute_event begin_compute() = 0;

  /// Lets all go on that does not wait for the event, lets the model write,
  /// and completes the event.
  virtual void end_compute(compute_event event,
                           const std::function<void()>& write)
    = 0;

  /// Completes the event at once.
  virtual void end_compute(compute_event event) = 0;

  /// Goes on until that many jobs were reported in all.
  virtual void run(std::size_t jobs) = 0;

  /// Goes on for a while, but completes no event. What is reported after it
  /// was free to go; what is not, need not be blocked.
  virtual void run_a_little() = 0;

  /// True if a fence lets compute go on by now.
  virtual bool open(const std::optional<fence>& f, step_id step) = 0;

  /// True if it does so soon, now that its jobs have ended.
  virtual bool opens(const std::optional<fence>& f, step_id step) {
    return open(f, step);
  }

  bool reported(job_id id) const {
    return outcome_of(id) != nullptr;
  }

  const completion* outcome_of(job_id id) const {
    for (const auto& outcome : done)
      if (outcome.job == id)
        return &outcome;
    return nullptr;
  }

  std::vector<job_id> order() const {
    std::vector<job_id> ids;
    for (const auto& outcome : done)
      ids.push_back(outcome.job);
    return ids;
  }

  std::vector<completion> done;
  std::vector<step_id> fences;

protected:
  void start(result<std::unique_ptr<copy_engine>> made) {
    if (!made.ok())
      throw std::runtime_error{made.failure().text};
    engine_ = std::move(made).value();
  }

  void poll() {
    engine_->poll(done, fences);
  }

  host_engine_config config_;
  // Outlives the engine, whose threads set it.
  wake_signal wake_;
  std::unique_ptr<copy_engine> engine_;
};

} // namespace kvtide::gpu
