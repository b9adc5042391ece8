// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/engine_owner.hpp"

#include <utility>

namespace kvtide::bench {

namespace {

/// An engine that says nothing for so long has failed.
constexpr auto patience = std::chrono::seconds{30};

} // namespace

result<std::unique_ptr<engine_owner>> engine_owner::make(const maker& make) {
  auto out = std::unique_ptr<engine_owner>{new engine_owner};
  auto made = make([self = out.get()] { self->woken_.set(); });
  if (!made)
    return made.failure();
  out->engine_ = std::move(made).value();
  return out;
}

error engine_owner::submit(std::vector<gpu::copy_job> jobs) {
  for (auto& job : jobs) {
    job.id = next_++;
    if (engine_->submit(std::move(job)) != ec::none)
      return {ec::device_failure, "the engine refused a job"};
  }
  return {};
}

result<std::uint64_t> engine_owner::wait(std::chrono::nanoseconds time) {
  (void)woken_.wait(time);
  done_.clear();
  fences_.clear();
  engine_->poll(done_, fences_);
  auto bytes = std::uint64_t{0};
  for (const auto& ended : done_) {
    if (ended.result != gpu::copy_result::done)
      return error{ec::device_failure, "a job failed: " + ended.text};
    bytes += ended.bytes;
  }
  return bytes;
}

error engine_owner::copy(std::vector<gpu::copy_job> jobs) {
  const auto started = std::chrono::steady_clock::now();
  if (auto failed = submit(std::move(jobs)); failed.code != ec::none)
    return failed;
  while (engine_->in_flight() > 0) {
    if (auto reported = wait(std::chrono::milliseconds{100}); !reported)
      return reported.failure();
    if (std::chrono::steady_clock::now() - started > patience)
      return {ec::timeout, "the engine has been silent for half a minute"};
  }
  return {};
}

} // namespace kvtide::bench
