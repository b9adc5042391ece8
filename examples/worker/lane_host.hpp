// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/runtime.hpp"

#include "examples/replay/frame_stream.hpp"
#include "examples/replay/local_lane.hpp"
#include "examples/replay/options.hpp"

#include <nlohmann/json_fwd.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kvtide::worker_program {

/// Says a line to whoever watches the program. Safe from any thread.
using line_sink = std::function<void(const std::string&)>;

/// Serves one rank to engines, one after the other: takes what an engine says
/// on a socket, and does it to the rank's memory and with the library's calls.
///
/// When the engine is gone, the rank's memory is not the engine's state any
/// more: it is taken back from the library until the next engine, or the same
/// one, comes and registers it.
class lane_host {
public:
  /// Listens. Throws `replay::stream_error` or `replay::bad_configuration`.
  /// @param side Must outlive this object, but not the memory: destroy the
  ///             worker first.
  /// @param life A random number of this process.
  /// @param stop Becomes true to end `run`.
  lane_host(const replay::replay_options& opts, rank_id id, kvtide::rank& side,
            std::string path, std::uint64_t life, const std::atomic<bool>& stop,
            line_sink say);

  lane_host(const lane_host&) = delete;
  lane_host& operator=(const lane_host&) = delete;

  /// Removes the socket's path.
  ~lane_host();

  /// Serves until it is told to stop. Throws `replay::replay_failure` if the
  /// rank cannot go on.
  void run();

private:
  enum class memory_state : std::uint8_t { none, asked_for, registered };

  void accept_engine();
  void serve();
  void answer(const nlohmann::json& message);
  void send(const nlohmann::json& message);
  void refuse(const std::string& why);
  kv_registered await_memory();
  void take_memory_back();
  /// Ends waits of the lane: see `local_lane`.
  void look_around() const;

  const replay::replay_options opts_;
  rank_id id_;
  std::string path_;
  std::uint64_t life_;
  const std::atomic<bool>& stop_;
  line_sink say_;
  replay::local_lane lane_;
  replay::unique_fd listener_;
  std::optional<replay::frame_stream> engine_;
  bool greeted_ = false;
  memory_state memory_ = memory_state::none;
};

} // namespace kvtide::worker_program
