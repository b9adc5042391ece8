// SPDX-License-Identifier: Apache-2.0

/// @file
/// Numbers of C as words.

#include "kvtide/error.hpp"
#include "kvtide/explain.hpp"
#include "kvtide/kvtide.h"

namespace {

/// @param last the greatest enumerator
template <class Enum>
const char* name_of(int32_t number, Enum last, const char* unknown) noexcept {
  if (number < 0 || number > static_cast<int32_t>(last))
    return unknown;
  return kvtide::to_string(static_cast<Enum>(number));
}

} // namespace

const char* kvtide_status_name(kvtide_status status) {
  if (status == KVTIDE_OK)
    return "ok";
  if (status == KVTIDE_INTERNAL)
    return "internal";
  return name_of(status, kvtide::ec::scheduler_unreachable, "unknown status");
}

const char* kvtide_chunk_state_name(int32_t state) {
  return name_of(state, kvtide::chunk_state::ready, "unknown state");
}

const char* kvtide_miss_reason_name(int32_t reason) {
  return name_of(reason, kvtide::miss_reason::draft, "unknown reason");
}
