// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "examples/serve/engine/cache_link.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace serve {

/// A cache that is out of use, and the blocks that its copies may still write.
/// Destroying a cache waits for its copies, and one that never ends would hold
/// up whoever waits: so a thread of its own does.
class retired_cache {
public:
  /// @param what nobody calls it any more
  /// @param blocks of nobody until its copies have ended
  /// @param on_gone called on the thread when they have
  retired_cache(std::unique_ptr<cache_link> what,
                std::vector<kvtide::block_id> blocks,
                std::function<void()> on_gone);

  retired_cache(const retired_cache&) = delete;
  retired_cache& operator=(const retired_cache&) = delete;

  /// Blocks until the copies have ended: for ever behind one that never does.
  ~retired_cache();

  /// Waits for the copies.
  /// @returns false if some still run after `patience`
  [[nodiscard]] bool wait(std::chrono::milliseconds patience) const;

  [[nodiscard]] const std::vector<kvtide::block_id>& blocks() const noexcept {
    return blocks_;
  }

private:
  std::vector<kvtide::block_id> blocks_;
  std::future<void> gone_;
  std::thread thread_;
};

} // namespace serve
