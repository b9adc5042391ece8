// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/worker.hpp"

#include "actors/one_caller.hpp"
#include "actors/rank_home.hpp"
#include "actors/rank_link.hpp"

#include <memory>
#include <string>

namespace kvtide {

/// What a worker consists of.
struct worker::impl : rank_home {
  using rank_home::rank_home;

  ~impl() override;

  /// Gives a rank a device and a worker, and says so to the link.
  void start_worker(rank::impl& seat) override;

  [[nodiscard]] error open_link(const std::string& scheduler);

  std::shared_ptr<one_caller> caller = std::make_shared<one_caller>();
  rank_link_actor link;
  bool opened = false;
};

} // namespace kvtide
