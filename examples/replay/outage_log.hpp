// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace kvtide::replay {

/// A time in which the engine had a rank less than it should.
struct outage {
  using moment = std::chrono::system_clock::time_point;

  rank_id rank = 0;
  /// The process was gone or silent, so that nothing was computed there.
  bool process = false;
  /// The library had lost the rank.
  bool link = false;
  /// The rank came back with the memory that it had.
  bool same_life = true;
  moment lost;
  std::optional<moment> back;
  /// When bytes of the cache were used again, on all ranks.
  std::optional<moment> hit;
};

/// Notes when ranks go and come back, as wall time that other processes can
/// compare with theirs.
class outage_log {
public:
  void process_lost(rank_id rank);
  void process_back(rank_id rank, bool same_life);
  void link_lost(rank_id rank);
  void link_back(rank_id rank, bool same_life);

  /// A load ended well.
  void hit();

  /// Every rank is here and serves.
  [[nodiscard]] bool whole() const noexcept {
    return open_.empty();
  }

  [[nodiscard]] const std::vector<outage>& all() const noexcept {
    return all_;
  }

private:
  struct state {
    /// Of `all_`.
    std::size_t index = 0;
    bool process_away = false;
    bool link_away = false;
  };

  state& open(rank_id rank);
  void close_if_over(rank_id rank);

  std::vector<outage> all_;
  std::map<rank_id, state> open_;
  /// The first of `all_` without a hit.
  std::size_t without_hit_ = 0;
};

} // namespace kvtide::replay
