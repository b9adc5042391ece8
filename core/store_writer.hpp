// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <cstdint>

namespace kvtide::core {

/// True if this rank copies the bytes of a store. Ranks that hold replicas
/// share the stores out by job id; the others report a job without copying.
/// @param writer this rank's number among the writers. A rank whose number
///               equals `writers` never writes.
/// @pre `writers > 0`
[[nodiscard]] constexpr bool writes_store(job_id id, std::uint32_t writer,
                                          std::uint32_t writers) noexcept {
  if (writer >= writers)
    return false;
  return writers == 1 || id % writers == writer;
}

} // namespace kvtide::core
