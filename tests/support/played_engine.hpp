// SPDX-License-Identifier: Apache-2.0

/// @file
/// Hears in the engine's place and writes it down.

#pragma once

#include "kvtide/answers.hpp"

#include "messages/engine.hpp"
#include "tests/support/engine_book.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvtide::test {

class played_engine {
public:
  /// Loads that end go into `book`, which outlives this object.
  explicit played_engine(engine_book& book) : book_(book) {
    // nop
  }

  played_engine(const played_engine&) = delete;

  played_engine& operator=(const played_engine&) = delete;

  /// To be spawned; must not hear of anything when this object is gone.
  [[nodiscard]] engine_actor::behavior_type behavior();

  void notice(std::string text);

  /// The first answer of that kind that was not taken yet.
  template <class Answer>
  [[nodiscard]] std::optional<Answer> take() {
    const auto found
      = std::find_if(answers_.begin(), answers_.end(), [](const auto& x) {
          return std::holds_alternative<Answer>(x);
        });
    if (found == answers_.end())
      return std::nullopt;
    auto out = std::get<Answer>(std::move(*found));
    answers_.erase(found);
    return out;
  }

  template <class Answer>
  [[nodiscard]] bool has() const {
    return std::any_of(answers_.begin(), answers_.end(), [](const auto& x) {
      return std::holds_alternative<Answer>(x);
    });
  }

  /// Notices since the last call.
  [[nodiscard]] std::vector<std::string> take_notices() {
    return std::exchange(notices_, {});
  }

  /// All that was heard, in order.
  [[nodiscard]] const std::vector<std::string>& log() const noexcept {
    return log_;
  }

  /// As the last plan said.
  [[nodiscard]] bool pending_work() const noexcept {
    return pending_work_;
  }

  /// The last one.
  [[nodiscard]] const msg::snapshot_answer& snapshot() const noexcept {
    return snapshot_;
  }

private:
  template <class Answer>
  void answer(const Answer& x, const std::string& text);

  engine_book& book_;
  std::vector<engine_event> answers_;
  std::vector<std::string> notices_;
  std::vector<std::string> log_;
  bool pending_work_ = false;
  msg::snapshot_answer snapshot_;
};

} // namespace kvtide::test
