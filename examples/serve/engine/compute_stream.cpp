// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/compute_stream.hpp"

#include "examples/serve/model/paged_kv.hpp"

#include <utility>

namespace serve {

compute_stream::compute_stream(const transformer& model, device_memory& memory,
                               std::function<void(compute_done)> on_done)
  : model_(model), memory_(memory), on_done_(std::move(on_done)),
    thread_([this] { run(); }) {
  // nop
}

compute_stream::~compute_stream() {
  {
    const auto guard = std::lock_guard{mutex_};
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void compute_stream::enqueue(compute_work work) {
  {
    const auto guard = std::lock_guard{mutex_};
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void compute_stream::drain() {
  auto guard = std::unique_lock{mutex_};
  changed_.wait(guard, [this] { return queue_.empty() && !busy_; });
}

void compute_stream::run() {
  auto guard = std::unique_lock{mutex_};
  for (;;) {
    changed_.wait(guard, [this] { return !queue_.empty() || ending_; });
    if (queue_.empty())
      return;
    const auto work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    guard.unlock();
    auto done = compute(work);
    if (work.over)
      work.over();
    on_done_(std::move(done));
    guard.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

compute_done compute_stream::compute(const compute_work& work) {
  auto res = compute_done{work.number, {}};
  for (const auto& row : work.rows) {
    auto kv = paged_kv{memory_.layout(), memory_.data(), row.table};
    for (auto at = std::int32_t{0}; at < row.count; ++at) {
      const auto index = static_cast<std::size_t>(at);
      const auto token
        = index < row.tokens.size() ? row.tokens[index] : row.sampled->value;
      model_.compute(token, row.first + at, kv, room_);
    }
    if (row.samples) {
      row.sampled->value = model_.next_token(room_);
      res.sampled.push_back(row.sampled->value);
    }
  }
  return res;
}

} // namespace serve
