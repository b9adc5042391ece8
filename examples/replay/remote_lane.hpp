// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/replay/frame_stream.hpp"
#include "examples/replay/lane.hpp"
#include "examples/replay/lane_messages.hpp"
#include "examples/replay/options.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace kvtide::replay {

/// A rank of another process, which runs `kvtide-worker`. Whatever goes wrong
/// on the way is `lane_lost`, at the latest when an answer is due for `limit`.
class remote_lane final : public lane {
public:
  /// Connects to the socket of a rank and says hello, without waiting.
  /// @returns nothing if nobody listens there
  [[nodiscard]] static std::unique_ptr<remote_lane>
  dial(const replay_options& opts, rank_id rank, const std::string& path);

  /// How long an answer may take from here on.
  void set_limit(std::chrono::milliseconds limit) {
    limit_ = limit;
  }

  /// Looks whether hello was answered. Does not wait. Throws
  /// `bad_configuration` if the two do not fit.
  /// @returns the number of the process's life
  [[nodiscard]] std::optional<std::uint64_t> take_greeting();

  void register_kv() override;
  kv_registered await_registered() override;
  void begin_step(step_id step, const std::string& plan) override;
  readiness await_ready(step_id step) override;
  void compute(const kv_work& work) override;
  void end_step(step_id step, nanoseconds_t end) override;
  void settle() override;
  void await_settled() override;
  check_tally take_tally() override;
  copy_work get_copies() override;
  void unregister_kv() override;
  void await_unregistered() override;

private:
  using wall_clock = std::chrono::steady_clock;

  remote_lane(const replay_options& opts, rank_id rank, unique_fd socket);

  /// Asks; with an empty `answer` nothing comes back.
  void ask(const nlohmann::json& message, const char* answer);
  /// Reads answers up to the one with this word.
  nlohmann::json await(const char* answer);
  /// Of the oldest question.
  nlohmann::json take_answer(wall_clock::time_point until);
  template <class Read>
  auto read(const nlohmann::json& message, Read as) const;
  [[noreturn]] void lose(const std::string& why) const;

  struct question {
    /// The word of its answer.
    const char* answer;
    wall_clock::time_point due;
  };

  rank_id rank_;
  wall_clock::duration limit_;
  frame_stream stream_;
  std::deque<question> open_;
  /// Something was said that `settle` has to wait for.
  bool unsettled_ = false;
  /// It was asked for.
  bool settling_ = false;
  check_tally tally_;
};

} // namespace kvtide::replay
