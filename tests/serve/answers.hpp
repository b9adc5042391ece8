// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/engine/serving_engine.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace serve::test {

/// Only a broken engine is waited for so long.
constexpr auto patience = std::chrono::seconds{60};

/// One request and what came of it.
struct answer {
  completion_id id = 0;
  std::string text;
  std::optional<completion_end> end;
  /// Calls of `on_end`; more than one is a fault.
  int ends = 0;
  /// Text that came behind the end.
  bool late_text = false;
};

/// Sends requests to an engine and waits for their answers. Must outlive what
/// it has asked.
class answers {
public:
  explicit answers(serving_engine& engine) : engine_(engine) {
    // nop
  }

  /// Sends a request.
  /// @param on_text called on the engine's thread with the bytes so far
  /// @returns its index, or nothing if the engine refused
  std::optional<std::size_t>
  ask(completion_request request,
      std::function<void(completion_id, std::size_t)> on_text = {});

  /// Waits until at most `count` requests are without an end.
  /// @returns false if that takes too long
  [[nodiscard]] bool wait_for_open(std::size_t count);

  /// Waits until some request has this many bytes, or its end.
  [[nodiscard]] bool wait_for_text(std::size_t index, std::size_t bytes);

  [[nodiscard]] answer at(std::size_t index) const;

  [[nodiscard]] std::vector<answer> all() const;

private:
  serving_engine& engine_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<answer> answers_;
  std::size_t open_ = 0;
};

} // namespace serve::test
