// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/copy_engine.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kvtide::test {

/// What a test lets happen on a GPU. The test and the device that it runs touch
/// it in turn.
struct silent_gpu {
  /// Submitted and not reported yet.
  std::vector<job_id> running;
  std::vector<gpu::completion> ended;
  error lost;

  /// A copy has ended, and nobody is told.
  void end(job_id job) {
    std::erase(running, job);
    auto added = gpu::completion{};
    added.job = job;
    ended.push_back(std::move(added));
  }

  /// After a sticky error every job has failed.
  void lose(error why) {
    lost = std::move(why);
    for (const auto job : std::exchange(running, {})) {
      auto added = gpu::completion{};
      added.job = job;
      added.result = gpu::copy_result::failed;
      added.text = lost.text;
      ended.push_back(std::move(added));
    }
  }
};

/// A copy engine whose callbacks never come (G1): only who asks hears.
class silent_engine : public gpu::copy_engine {
public:
  explicit silent_engine(std::shared_ptr<silent_gpu> gpu)
    : gpu_(std::move(gpu)) {
    // nop
  }

  ec submit(gpu::copy_job job) override {
    gpu_->running.push_back(job.id);
    return ec::none;
  }

  std::optional<fence> make_fence(step_id,
                                  const std::vector<job_id>&) override {
    return fence{};
  }

  void poll(std::vector<gpu::completion>& done,
            std::vector<step_id>&) override {
    for (auto& one : std::exchange(gpu_->ended, {}))
      done.push_back(std::move(one));
  }

  void advance(nanoseconds_t) override {
    // nop
  }

  bool advanced() const override {
    return true;
  }

  nanoseconds_t next_due() const override {
    return never;
  }

  std::size_t in_flight() const override {
    return gpu_->running.size() + gpu_->ended.size();
  }

  error lost() const override {
    return gpu_->lost;
  }

private:
  std::shared_ptr<silent_gpu> gpu_;
};

} // namespace kvtide::test
