// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/worker.hpp"

#include "actors/one_caller.hpp"
#include "actors/rank_home.hpp"
#include "net/simple_link.hpp"

#include <memory>

namespace kvtide {

/// What a worker consists of.
struct worker::impl : rank_home {
  using rank_home::rank_home;

  ~impl();

  /// Gives a rank a device and a worker, and says so to the link. Each time is
  /// another life: what was in the memory before is gone.
  void start_worker(rank::impl& seat);

  std::shared_ptr<one_caller> caller = std::make_shared<one_caller>();
  net::simple_link_actor link;
};

} // namespace kvtide
