// SPDX-License-Identifier: Apache-2.0

/// @file
/// The ranks of a process that owns GPUs, while the scheduler is elsewhere:
/// component `net`, kvtide::net.

#pragma once

#include "kvtide/network.hpp"
#include "kvtide/options.hpp"
#include "kvtide/runtime.hpp"

#include <memory>
#include <string>
#include <vector>

namespace kvtide {

struct worker_options {
  /// The same as the engine's: what has to fit is compared when a rank joins.
  /// `workers` is not looked at; `network` is required.
  options shared;

  /// Ranks that live here; at least one, each once.
  std::vector<rank_id> ranks;

  /// Where the scheduler listens. Empty: the scheduler dials
  /// `network_options::listen`.
  std::string scheduler;
};

/// Hosts the ranks of this process. Lives through the loss of its scheduler: it
/// keeps its memory, lets steps go on without the cache, and joins again.
///
/// Thread-safety: as `runtime`; each rank may have a thread of its own.
class worker {
public:
  /// Starts to look for the scheduler; does not wait for it. Each rank needs
  /// its `register_kv` next, whether the scheduler is there or not.
  /// @returns `ec::invalid_options` and others as `runtime::start`.
  [[nodiscard]] static result<worker> start(const worker_options& opts);

  worker(worker&&) noexcept;
  worker& operator=(worker&&) noexcept;
  ~worker();

  /// Valid while the worker lives.
  /// @pre `id` is one of `worker_options::ranks`
  [[nodiscard]] rank& local_rank(rank_id id);

  /// As `runtime::restart_rank`.
  [[nodiscard]] error restart_rank(rank_id id);

private:
  struct impl;
  explicit worker(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

} // namespace kvtide
