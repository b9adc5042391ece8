// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "core/change_log.hpp"

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace kvtide::core {

/// What a replica says to the directory, and when: batches of bounded size, few
/// of them unanswered, and a bounded list of what waits. When that overflows,
/// or something was lost, it starts over: it reads its pool again from the
/// first slot, a part at a time, while what changes goes on.
///
/// Why that is right: whatever is read or changed is true when it is said, and
/// comes on one path in its order, so that the last word on each key holds; a
/// key of which nothing is said was in its slot all the time, and is read.
///
/// Deterministic; not thread-safe.
class publication {
public:
  struct config {
    /// Keys in a batch: 16 KiB.
    std::size_t batch_keys = 2'048;
    /// Batches without an answer.
    std::size_t window = 4;
    /// Keys that wait.
    std::size_t backlog = 65'536;
  };

  struct batch {
    std::uint64_t sequence = 0;
    bool starts_over = false;
    bool more = false;
    std::vector<std::uint64_t> removed;
    std::vector<std::uint64_t> stored;
  };

  explicit publication(const config& cfg) : config_(cfg) {
    // nop
  }

  // -- what it hears ----------------------------------------------------------

  /// The directory is there, or the pool is another one, or something was lost:
  /// says everything from the start.
  void start_over();

  /// The directory is gone: says nothing until `start_over`.
  void pause();

  void add(std::span<const key_change> changes);

  /// What was read for `wanted_part`.
  /// @param next the first slot behind it
  void add_part(slot_id first, slot_id next, bool last,
                std::span<const std::uint64_t> digests);

  /// The directory has answered a batch.
  /// @param start_over it asks for everything
  void answered(std::uint64_t sequence, bool start_over);

  // -- what is to be done -----------------------------------------------------

  /// The first slot of a part that is to be read now; once.
  [[nodiscard]] std::optional<slot_id> wanted_part();

  /// A batch that is to be sent now.
  [[nodiscard]] std::optional<batch> next();

  /// Batches are without an answer.
  [[nodiscard]] bool waits() const noexcept {
    return !unanswered_.empty();
  }

  /// Times that it had to start over as more waited than it may keep.
  [[nodiscard]] std::uint64_t overflows() const noexcept {
    return overflows_;
  }

private:
  enum class reading : std::uint8_t { done, due, asked };

  void keep(std::uint64_t digest, bool stored);

  config config_;
  bool active_ = false;
  /// The first batch of a start has not been sent.
  bool announces_ = false;
  /// The last batch said that more follows.
  bool owes_ = false;
  std::uint64_t sequence_ = 0;
  /// Of the last batch that started over.
  std::uint64_t started_ = 0;
  std::deque<std::uint64_t> unanswered_;
  /// The last word on each key that was not sent yet.
  tsl::robin_map<std::uint64_t, bool> pending_;
  reading reading_ = reading::done;
  slot_id next_slot_ = 0;
  std::uint64_t overflows_ = 0;
};

} // namespace kvtide::core
