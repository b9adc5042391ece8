// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/network.hpp"
#include "kvtide/runtime.hpp"
#include "kvtide/worker.hpp"

#include "tests/support/ear.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::test {

/// Memory of a rank, and what the rank's thread does with it.
class played_side {
public:
  played_side(rank& side, rank_id id);

  /// Registers memory, and waits until that is done.
  void register_memory();

  /// @returns how it went on, `ec::none` if the step is ready
  error begin(step_id step, std::string plan = {});

  void end(step_id step);

  template <class Event>
  std::optional<Event> hear() {
    return ear_.await<Event>(*side_);
  }

  [[nodiscard]] rank& get() {
    return *side_;
  }

private:
  rank* side_;
  rank_id id_;
  std::vector<std::byte> gpu_;
  ear<rank_event> ear_;
};

/// An engine whose rank 0 lives with it, and whose rank 1 lives in a worker;
/// both in this process, with real sockets between them.
class deployment {
public:
  deployment();

  /// Starts the engine, which listens or dials.
  void start_engine();

  /// Starts the worker, which dials or listens, and registers its memory.
  void start_worker();

  /// Waits until rank 1 takes part.
  void await_rank();

  /// Runs a step on both ranks.
  void run_step(step_call call);

  /// A request is stored, and found again by another one, on both ranks.
  void serve();

  template <class Event>
  std::optional<Event> hear() {
    return engine_ear.await<Event>(*engine);
  }

  /// The same for all processes but for `workers` and `network`.
  options shared;
  network_options engine_side;
  network_options worker_side;
  /// The engine dials.
  bool engine_dials = false;

  std::shared_ptr<network> engine_network;
  std::shared_ptr<network> worker_network;
  std::optional<runtime> engine;
  std::optional<worker> far;
  std::optional<played_side> here;
  std::optional<played_side> there;
  ear<engine_event> engine_ear;
  step_id step = 0;
  request_id last_request = 0;
};

} // namespace kvtide::test
