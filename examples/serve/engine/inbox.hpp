// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/engine/completion.hpp"
#include "examples/serve/engine/compute_stream.hpp"
#include "examples/serve/engine/wake_fd.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

namespace serve {

/// A request that `submit` has taken.
struct submitted {
  completion_id id = 0;
  completion_request request;
  completion_callbacks callbacks;
};

struct abort_request {
  completion_id id = 0;
};

/// Somebody wants to know what the cache says.
struct stats_wanted {};

struct stop_request {
  std::chrono::steady_clock::time_point deadline;
};

/// The last copy of a cache that is out of use has ended.
struct retired_cache_gone {
  /// Of the cache.
  std::uint64_t life = 0;
};

/// Everything that other threads say to the engine's.
using inbox_message
  = std::variant<submitted, abort_request, stats_wanted, stop_request,
                 retired_cache_gone, compute_done>;

/// The one door into the engine's thread. What is posted by one thread comes
/// out in its order.
///
/// Thread-safety: any thread may post, the engine's takes.
class inbox {
public:
  explicit inbox(wake_fd fd) : fd_(std::move(fd)) {
    // nop
  }

  void post(inbox_message message) {
    {
      const auto guard = std::lock_guard{mutex_};
      messages_.push_back(std::move(message));
    }
    fd_.set();
  }

  [[nodiscard]] std::vector<inbox_message> take() {
    fd_.clear(); // Before the look: what comes behind it sets it again.
    const auto guard = std::lock_guard{mutex_};
    return std::exchange(messages_, {});
  }

  /// Readable while there is something to take.
  [[nodiscard]] int event_fd() const noexcept {
    return fd_.get();
  }

private:
  wake_fd fd_;
  std::mutex mutex_;
  std::vector<inbox_message> messages_;
};

} // namespace serve
