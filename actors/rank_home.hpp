// SPDX-License-Identifier: Apache-2.0

/// @file
/// A process that hosts ranks: the engine's, or one of a worker.

#pragma once

#include "kvtide/options.hpp"
#include "kvtide/result.hpp"

#include "actors/rank_impl.hpp"
#include "gpu/host_pool_memory.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace kvtide {

/// Checks what has nothing to do with the cache's rules: whether this machine
/// has the memory, the devices and the threads that `opts` ask for.
/// @param here ranks of this process
[[nodiscard]] error fault_of_machine(const options& opts, std::uint32_t here);

/// Ranks, and the actor system that their actors share with others. The only
/// place where scheduler policy, threads and detached actors are chosen.
struct rank_home {
  explicit rank_home(const options& options_);

  /// Sends all actors of ranks away. The system's destructor waits for them.
  virtual ~rank_home();

  /// Makes queues and descriptors for `who`; no actors yet.
  [[nodiscard]] error make_ranks(const std::vector<rank_id>& who);

  /// Starts threads.
  /// @param net null: nobody is elsewhere
  void start_system(network* net);

  /// Gives a rank a device and a worker, which knows whom to serve.
  virtual void start_worker(rank::impl& seat) = 0;

  /// Gives a rank a device and a worker, and a port if it has none.
  /// @param scheduler may be null if `config.remote`
  void start_rank(rank::impl& seat, gpu_worker_config config,
                  const scheduler_worker_port& scheduler);

  /// Whoever spawns is left holding the system's logger, for which the system's
  /// destructor waits: on another thread it would do so for ever. After the
  /// last spawn of a call.
  static void forget_system();

  /// Null if it does not live here, or does not exist.
  [[nodiscard]] rank::impl* find(rank_id id) const;

  /// What the device of a rank starts with.
  [[nodiscard]] device_config device_of(const rank::impl& seat) const;

  /// Starts the actors of a rank again, as its next incarnation.
  /// @returns what keeps it from that
  [[nodiscard]] error restart(rank::impl& seat);

  options opts;
  caf::actor_system_config config;
  /// Without a cache there is none, and no thread.
  std::optional<caf::actor_system> system;
  std::shared_ptr<gpu::host_pool_memory> shared_pool
    = std::make_shared<gpu::host_pool_memory>();
  /// Who pins it.
  std::shared_ptr<shared_pins> pins = std::make_shared<shared_pins>();
  /// One per rank of the deployment; null if it does not live here.
  std::vector<std::unique_ptr<rank>> ranks;
  /// For tests: changes what a device of a rank starts with.
  std::function<void(device_config&)> change_device;
  /// Simulated time that the engine has asked for.
  nanoseconds_t now = 0;
};

} // namespace kvtide
