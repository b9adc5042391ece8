// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/retired_cache.hpp"

#include <system_error>
#include <utility>

namespace serve {

retired_cache::retired_cache(std::unique_ptr<cache_link> what,
                             std::vector<kvtide::block_id> blocks,
                             std::function<void()> on_gone)
  : blocks_(std::move(blocks)) {
  const auto end = std::make_shared<std::packaged_task<void()>>(
    [cache = std::shared_ptr<cache_link>{std::move(what)},
     said = std::move(on_gone)]() mutable {
      cache.reset();
      said();
    });
  gone_ = end->get_future();
  try {
    thread_ = std::thread{[end] { (*end)(); }};
  } catch (const std::system_error&) {
    (*end)(); // Late is better than never.
  }
}

retired_cache::~retired_cache() {
  if (thread_.joinable())
    thread_.join();
}

bool retired_cache::wait(std::chrono::milliseconds patience) const {
  return gone_.wait_for(patience) == std::future_status::ready;
}

} // namespace serve
