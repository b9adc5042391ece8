// SPDX-License-Identifier: Apache-2.0

#include "kvtide/explain.hpp"

namespace kvtide {

const char* to_string(chunk_state state) noexcept {
  switch (state) {
    case chunk_state::absent:
      return "absent";
    case chunk_state::evicted:
      return "evicted";
    case chunk_state::writing:
      return "writing";
    case chunk_state::loading:
      return "loading";
    case chunk_state::partial:
      return "partial";
    case chunk_state::ready:
      return "ready";
  }
  return "unknown chunk state";
}

const char* to_string(miss_reason reason) noexcept {
  switch (reason) {
    case miss_reason::none:
      return "none";
    case miss_reason::offloading_off:
      return "offloading_off";
    case miss_reason::asleep:
      return "asleep";
    case miss_reason::own_jobs:
      return "own_jobs";
    case miss_reason::request_lost:
      return "request_lost";
    case miss_reason::no_read:
      return "no_read";
    case miss_reason::rank_away:
      return "rank_away";
    case miss_reason::cache_lost:
      return "cache_lost";
    case miss_reason::no_keys:
      return "no_keys";
    case miss_reason::last_token:
      return "last_token";
    case miss_reason::absent:
      return "absent";
    case miss_reason::evicted:
      return "evicted";
    case miss_reason::below_threshold:
      return "below_threshold";
    case miss_reason::writing:
      return "writing";
    case miss_reason::loading:
      return "loading";
    case miss_reason::window_hole:
      return "window_hole";
    case miss_reason::draft:
      return "draft";
  }
  return "unknown reason";
}

} // namespace kvtide
