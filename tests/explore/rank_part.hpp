// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "messages/device.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/rank_side.hpp"
#include "tests/explore/copy_desk.hpp"
#include "tests/explore/cuda_copies.hpp"

#include <caf/actor.hpp>

#include <compare>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace kvtide::explore {

/// What an actor is for its rank.
enum class rank_role { worker, device, side, link_to_worker, link_from_worker };

/// One life of a rank.
struct rank_life {
  rank_id rank = 0;
  incarnation_id incarnation = 0;
  /// The scheduler knows it by another link after each loss that it noticed.
  std::uint32_t connection = 0;

  friend auto operator<=>(const rank_life&, const rank_life&) = default;
};

/// Which life of a rank an actor belongs to.
struct rank_member {
  rank_life life;
  rank_role role = rank_role::worker;

  /// The worker and the device are the product's, the others play somebody.
  [[nodiscard]] bool is_real() const noexcept {
    return role == rank_role::worker || role == rank_role::device;
  }
};

/// One rank of a world: its actors, its copies and its compute.
struct rank_part {
  /// One of the two makes the copies.
  std::shared_ptr<copy_desk> desk;
  std::shared_ptr<cuda_copies> cuda;
  incarnation_id incarnation = 1;
  std::uint32_t connection = 0;
  bool alive = false;
  /// What it says is not heard, and it hears nothing.
  bool cut = false;
  /// The scheduler, and the worker, know of the cut.
  bool noticed_there = false;
  bool noticed_here = false;
  bool joined = false;
  gpu_worker_actor worker;
  device_actor device;
  /// Scheduler to worker, and worker to scheduler.
  caf::actor down;
  caf::actor up;
  rank_side_actor side;
  /// Called by the engine, not yet ready here.
  std::set<step_id> expected;
  struct compute {
    step_id step = 0;
    std::uint64_t fence = 0;
    bool running = false;
  };
  /// Enqueued and not ended, in order.
  std::deque<compute> stream;
  /// Handles of compute that has ended.
  std::set<std::uint64_t> ended;
  /// Its CUDA context is gone.
  [[nodiscard]] bool lost() const {
    return cuda && cuda->lost();
  }

  /// All plans that were sent to it, in order.
  std::vector<std::string> plans;

  /// No handle may outlive the actor system.
  void drop_handles() {
    worker = nullptr;
    device = nullptr;
    down = nullptr;
    up = nullptr;
    side = nullptr;
  }
};

} // namespace kvtide::explore
