// SPDX-License-Identifier: Apache-2.0

#include "gpu/digest_threads.hpp"

#include <utility>

namespace kvtide::gpu {

digest_threads::digest_threads(const named_pool& pool, wake_function wake,
                               std::uint32_t count)
  : pool_(pool), wake_(std::move(wake)) {
  threads_.reserve(count);
  try {
    for (std::uint32_t i = 0; i < count; ++i)
      threads_.emplace_back([this] { run(); });
  } catch (...) {
    if (threads_.empty())
      throw;
    // Fewer make it slower, not wrong.
  }
}

digest_threads::~digest_threads() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

void digest_threads::put(const digest_task& task) {
  {
    const std::lock_guard lock{mutex_};
    waiting_.push_back(task);
  }
  changed_.notify_one();
}

std::vector<digest_task> digest_threads::take() {
  const std::lock_guard lock{mutex_};
  return std::exchange(ready_, {});
}

void digest_threads::finish() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return waiting_.empty() && running_ == 0; });
}

void digest_threads::run() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_)
      return;
    auto task = waiting_.front();
    waiting_.pop_front();
    ++running_;
    lock.unlock();
    task.digest = pool_.digest_of(task.content);
    lock.lock();
    ready_.push_back(task);
    --running_;
    const auto is_last = waiting_.empty() && running_ == 0;
    lock.unlock();
    if (is_last)
      changed_.notify_all(); // Somebody may wait in `finish`.
    wake_();
    lock.lock();
  }
}

} // namespace kvtide::gpu
