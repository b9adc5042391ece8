// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/engine/serving_engine.hpp"
#include "examples/serve/http/completion_engine.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace serve {

/// The engine with the calls that the server knows. A thread of its own waits
/// for the cache's counters, which come from other threads; all who ask
/// meanwhile get the same ones.
class engine_link : public completion_engine {
public:
  /// `engine` is borrowed.
  explicit engine_link(serving_engine& engine);
  ~engine_link() override;

  kvtide::result<completion_id> submit(completion_request request,
                                       completion_callbacks callbacks) override;
  void abort(completion_id id) override;
  void ask_stats(std::function<void(const engine_stats&)> done) override;

  /// Nobody is called back any more. Blocks for a second at most.
  void stop();

private:
  void answer_all();

  serving_engine& engine_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::vector<std::function<void(const engine_stats&)>> waiting_;
  /// Last, as it uses all of the above.
  std::thread thread_;
};

} // namespace serve
