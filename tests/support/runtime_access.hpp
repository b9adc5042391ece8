// SPDX-License-Identifier: Apache-2.0

/// @file
/// The way into a runtime for tests that break it: kill its actors, make its
/// device fail, be the thread that is in a call.

#pragma once

#include "kvtide/runtime.hpp"

#include "actors/runtime_impl.hpp"

namespace kvtide {

/// Friend of both classes.
struct runtime_access {
  static runtime::impl& parts(runtime& what) {
    return *what.impl_;
  }

  static rank::impl& parts(rank& what) {
    return *what.impl_;
  }
};

} // namespace kvtide
