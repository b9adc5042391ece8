// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the opaque handles are.

#pragma once

#include "kvtide/kvtide.h"
#include "kvtide/runtime.hpp"

#include "capi/inbox.hpp"

#include <memory>
#include <utility>
#include <vector>

struct kvtide_rank {
  explicit kvtide_rank(kvtide::rank& side_) : side(side_), events(side_) {
    // nop
  }

  kvtide::rank& side;
  kvtide::capi::inbox<kvtide::rank, kvtide::rank_event> events;
};

struct kvtide_runtime {
  explicit kvtide_runtime(kvtide::runtime side_)
    : side(std::move(side_)), events(side) {
    // nop
  }

  kvtide::runtime side;
  kvtide::capi::inbox<kvtide::runtime, kvtide::engine_event> events;
  /// One for each rank of this process.
  std::vector<std::unique_ptr<kvtide_rank>> ranks;
};
