// SPDX-License-Identifier: Apache-2.0

#include "actors/thread_room.hpp"

#include <future>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace kvtide {

error check_thread_room(std::size_t count) {
  auto out = error{};
  auto over = std::promise<void>{};
  const auto wait = over.get_future().share();
  auto started = std::vector<std::thread>{};
  started.reserve(count);
  try {
    while (started.size() < count)
      started.emplace_back([wait] {
        // With what a thread's first allocation takes of the address space.
        auto* first = ::operator new(64, std::nothrow);
        wait.wait();
        ::operator delete(first);
      });
  } catch (const std::system_error& refused) {
    out = {ec::out_of_memory,
           "the system refuses to start " + std::to_string(count)
             + " threads more (" + refused.what()
             + "): raise its limits on threads and memory, or ask for fewer "
               "actor_threads and ranks"};
  }
  over.set_value();
  for (auto& one : started)
    one.join();
  return out;
}

} // namespace kvtide
