// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include "gpu/geometry.hpp"
#include "gpu/host_memory.hpp"

#include <cstdint>
#include <mutex>
#include <vector>

namespace kvtide::gpu {

/// The memory of one host pool. Ranks of one process that hold replicas share
/// one; it then outlives each of them. The lock is taken at registration only,
/// by actors that may run at the same time.
class host_pool_memory {
public:
  /// Maps the memory, or finds the one mapped before: content survives that a
  /// rank unregisters and comes back.
  /// @param memory its references say what the bytes of a slot mean.
  /// @returns `ec::invalid_argument` if an earlier registration filled slots of
  ///          another form, `ec::invalid_options` if not one slot fits into
  ///          `host_bytes`, `ec::out_of_memory`.
  [[nodiscard]] result<slot_pool> open(const geometry& geometry,
                                       const kv_memory& memory,
                                       std::uint64_t host_bytes);

private:
  struct piece {
    group_id group = 0;
    std::uint32_t layer = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const piece&, const piece&) = default;
  };

  std::mutex mutex_;
  bool opened_ = false;
  std::vector<piece> form_;
  std::uint64_t slot_bytes_ = 0;
  host_memory memory_;
  slot_pool pool_;
};

} // namespace kvtide::gpu
