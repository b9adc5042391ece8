// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/fence_joints.hpp"

#include <utility>

namespace kvtide::gpu {

error fence_joints::reserve(std::size_t count) {
  while (free_.size() < count) {
    auto made = make();
    if (!made)
      return made.failure();
    free_.push_back(std::move(made).value());
  }
  return {};
}

cudaEvent_t fence_joints::join(step_id step,
                               const std::vector<cudaEvent_t>& ends) {
  auto made = take();
  if (!made)
    return nullptr;
  const auto where = made.value().where.get();
  const auto end = made.value().end.get();
  for (const auto one : ends)
    if (check("cudaStreamWaitEvent", ::cudaStreamWaitEvent(where, one, 0)).code
        != ec::none)
      return nullptr;
  if (check("cudaEventRecord", ::cudaEventRecord(end, where)).code != ec::none)
    return nullptr;
  made.value().recorded = true;
  handed_out_.push_back({step, std::move(made).value()});
  return end;
}

void fence_joints::take_back(step_id step) {
  for (auto& x : handed_out_)
    if (x.step < step)
      free_.push_back(std::move(x.what));
  std::erase_if(handed_out_,
                [step](const handed_out& x) { return x.step < step; });
}

void fence_joints::abandon() noexcept {
  for (auto& x : handed_out_) {
    x.what.where.release();
    x.what.end.release();
  }
  for (auto& x : free_) {
    x.where.release();
    x.end.release();
  }
}

result<fence_joints::joint> fence_joints::make() {
  auto where = make_stream(true);
  if (!where)
    return where.failure();
  auto end = make_event();
  if (!end)
    return end.failure();
  return joint{std::move(where).value(), std::move(end).value(), false};
}

result<fence_joints::joint> fence_joints::take() {
  for (auto& x : free_) {
    const auto status
      = x.recorded ? ::cudaEventQuery(x.end.get()) : cudaSuccess;
    ignore(status);
    if (status != cudaSuccess)
      continue;
    std::swap(x, free_.back());
    auto out = std::move(free_.back());
    free_.pop_back();
    return out;
  }
  return make();
}

} // namespace kvtide::gpu
