// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/engine_link.hpp"

#include <chrono>
#include <utility>

namespace serve {

namespace {

// Then the last known counters have to do.
constexpr auto patience = std::chrono::seconds{1};

} // namespace

engine_link::engine_link(serving_engine& engine)
  : engine_(engine), thread_([this] { answer_all(); }) {
  // nop
}

engine_link::~engine_link() {
  stop();
}

kvtide::result<completion_id>
engine_link::submit(completion_request request,
                    completion_callbacks callbacks) {
  return engine_.submit(std::move(request), std::move(callbacks));
}

void engine_link::abort(completion_id id) {
  engine_.abort(id);
}

void engine_link::ask_stats(std::function<void(const engine_stats&)> done) {
  const auto lock = std::lock_guard{mutex_};
  waiting_.push_back(std::move(done));
  changed_.notify_one();
}

void engine_link::stop() {
  {
    const auto lock = std::lock_guard{mutex_};
    stopped_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable())
    thread_.join();
}

void engine_link::answer_all() {
  auto lock = std::unique_lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_)
      return;
    const auto those = std::exchange(waiting_, {});
    lock.unlock();
    auto stats = engine_.fresh_stats(patience);
    if (!stats)
      stats = engine_.stats();
    for (const auto& done : those)
      done(*stats);
    lock.lock();
  }
}

} // namespace serve
