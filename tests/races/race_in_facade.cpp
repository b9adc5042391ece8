// SPDX-License-Identifier: Apache-2.0

// Two threads push into an event queue that was built without its lock.

#include "actors/event_queue.hpp"

#include <thread>
#include <utility>

int main() {
  auto ready = kvtide::ready_fd::create();
  if (!ready.ok())
    return 1;
  auto queue = kvtide::event_queue<int>{std::move(ready).value()};
  const auto push = [&queue] {
    for (auto i = 0; i < 1'000; ++i)
      queue.push(i);
  };
  auto other = std::thread{push};
  push();
  other.join();
}
