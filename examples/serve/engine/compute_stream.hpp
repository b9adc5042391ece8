// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "examples/serve/engine/device_memory.hpp"
#include "examples/serve/engine/sequence.hpp"
#include "examples/serve/model/transformer.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace serve {

/// What compute does for one request in a step. Has a block table of its own,
/// as launched kernels do: what happens to the request later changes nothing.
struct compute_row {
  /// Tokens `[first, first + count)` are computed.
  std::int32_t first = 0;
  std::int32_t count = 0;
  /// Ids of those that were known when the step was planned: all of them, or
  /// all but the last. That one is then in `sampled`.
  std::vector<token_id> tokens;
  std::shared_ptr<sampled_token> sampled;
  block_table table;
  /// Sample a token behind the last one.
  bool samples = false;
};

/// One step's compute.
struct compute_work {
  /// Given back in `compute_done`.
  std::uint64_t number = 0;
  std::vector<compute_row> rows;
  /// Called when all is computed, before `compute_done` is said.
  std::function<void()> over;
};

/// What a step has sampled.
struct compute_done {
  std::uint64_t number = 0;
  /// One per row that samples, in their order.
  std::vector<token_id> sampled;
};

/// A thread that computes what is enqueued, in this order: in the role of a
/// GPU's stream. Touches the device's memory and nothing else of the engine's.
class compute_stream {
public:
  /// @param on_done called on the compute thread
  compute_stream(const transformer& model, device_memory& memory,
                 std::function<void(compute_done)> on_done);

  compute_stream(const compute_stream&) = delete;
  compute_stream& operator=(const compute_stream&) = delete;

  /// Computes what is enqueued, then ends.
  ~compute_stream();

  /// Returns at once. Any thread.
  void enqueue(compute_work work);

  /// Blocks until everything is computed, and said to be. Any thread but the
  /// compute thread.
  void drain();

private:
  void run();
  [[nodiscard]] compute_done compute(const compute_work& work);

  const transformer& model_;
  device_memory& memory_;
  std::function<void(compute_done)> on_done_;
  workspace room_;
  // -- shared by threads, under the mutex -------------------------------------
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<compute_work> queue_;
  bool busy_ = false;
  bool ending_ = false;
  // ---------------------------------------------------------------------------
  std::thread thread_;
};

} // namespace serve
