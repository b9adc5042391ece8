// SPDX-License-Identifier: Apache-2.0

/// @file
/// One rank with a real worker, whose rank side and device are played. Copies
/// end when the test says so, and move what they would move.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/job.hpp"
#include "kvtide/kv_memory.hpp"

#include "actors/gpu_worker.hpp"
#include "messages/device.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/rank_side.hpp"
#include "messages/scheduler.hpp"
#include "tests/support/actor_world.hpp"
#include "tests/support/engine_book.hpp"
#include "tests/support/memory_shadow.hpp"
#include "tests/support/turn.hpp"

#include <caf/typed_actor.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::test {

/// Stands between the scheduler and a worker, and listens.
using tap_actor = caf::typed_actor<
  caf::reacts_to<msg::begin_step>, caf::reacts_to<msg::stores>,
  caf::reacts_to<msg::tick>, caf::reacts_to<msg::pause>,
  caf::reacts_to<msg::report_again>, caf::reacts_to<msg::seat>,
  caf::reacts_to<msg::worker_ready>, caf::reacts_to<msg::worker_left>,
  caf::reacts_to<msg::transfers_done>, caf::reacts_to<msg::ticked>,
  caf::reacts_to<msg::steps_taken>, caf::reacts_to<msg::chunks_kept>>;

class played_rank {
public:
  /// What all ranks share. Outlives them, but for the world.
  struct surroundings {
    actor_world& world;
    engine_book& book;
    scheduler_actor scheduler;
    std::function<void(std::string)> notice;
    /// Compute ends only by `end_compute`.
    bool compute_held = false;
    /// Copies that moved something else than their key says.
    std::vector<std::string> wrong_bytes;
  };

  /// With `config.remote` plans go through bytes, the rank side asks for every
  /// step, and a lost rank is one whose connection is lost.
  played_rank(surroundings& around, gpu_worker_config config);

  played_rank(const played_rank&) = delete;

  played_rank& operator=(const played_rank&) = delete;

  /// Begins a life with so many host slots.
  void start(std::uint64_t slots);

  /// Begins the next one.
  void restart(std::uint64_t slots);

  void unregister();

  void register_again();

  /// To the scheduler, as if the worker had said so.
  template <class Message>
  void say(Message message) {
    around_.world.send_as(tap_, around_.scheduler, std::move(message));
  }

  /// Forgets all handles: none may outlive the actor system.
  void let_go();

  // -- compute and copies -----------------------------------------------------

  /// The last step whose compute may go on.
  [[nodiscard]] step_id last_ready() const noexcept {
    return last_ready_;
  }

  /// Ends the oldest step whose compute may go on.
  void end_compute();

  /// @returns false if the device does not have that job
  bool end_copy(job_id id, const ending& how);

  /// Jobs that the device may end now, ascending.
  [[nodiscard]] std::vector<job_id> copies() const;

  // -- what was heard ---------------------------------------------------------

  /// What the device was told since the last call.
  [[nodiscard]] std::vector<std::string> take_device_log() {
    return std::exchange(device_log_, {});
  }

  /// Plans as bytes, since the start.
  [[nodiscard]] const std::vector<std::string>& plans() const noexcept {
    return plans_;
  }

  [[nodiscard]] gpu_worker_state& worker_state() const {
    return state_of<gpu_worker_state>(worker_);
  }

  // -- faults -----------------------------------------------------------------

  /// The worker, then the device.
  void kill();

  /// The device, and the copies that it makes, live on.
  void kill_worker();

  /// Ends a device that `kill_worker` left.
  void kill_orphan();

  /// The next such report is lost on its way.
  void lose_report(job_id job, job_status status);

  /// The next stores never reach the worker.
  void lose_stores();

private:
  struct part_state {
    static inline const char* name = "test-rank";
  };

  static tap_actor::behavior_type
  play_tap(tap_actor::stateful_pointer<part_state> self, played_rank* rank);

  static rank_side_actor::behavior_type
  play_rank_side(rank_side_actor::stateful_pointer<part_state>,
                 played_rank* rank);

  static device_actor::behavior_type
  play_device(device_actor::stateful_pointer<part_state> self,
              played_rank* rank);

  void submit(const msg::submit_jobs& x);

  /// A fence is over when its jobs are.
  void answer_fences();

  surroundings& around_;
  gpu_worker_config config_;
  std::uint64_t slots_ = 0;
  tap_actor tap_;
  gpu_worker_actor worker_;
  device_actor device_;
  /// Of the life before.
  device_actor orphan_;
  memory_shadow memory_;
  std::vector<std::string> device_log_;
  /// With the device, by id.
  std::map<job_id, job> copies_;
  /// Copies that the device must end before another one starts.
  std::map<job_id, std::set<job_id>> before_;
  std::set<job_id> late_;
  std::set<std::pair<job_id, job_status>> lost_reports_;
  bool loses_stores_ = false;
  std::deque<msg::make_fence> fences_;
  std::vector<std::string> plans_;
  /// Steps whose compute may go on and has not ended.
  std::deque<step_id> ready_;
  step_id last_ready_ = 0;
};

} // namespace kvtide::test
