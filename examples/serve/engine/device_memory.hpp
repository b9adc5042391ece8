// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/kv_memory.hpp"

#include "examples/serve/model/kv_layout.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace serve {

/// The blocks that the model computes in. Plain memory that stands in for a
/// GPU's: kvtide copies to and from it while the compute thread works, and who
/// may touch which block when is kvtide's to say.
class device_memory {
public:
  /// @param blocks usable ones, ids 1 to `blocks`; block 0 names no memory
  device_memory(const kv_layout& layout, std::uint32_t blocks);

  [[nodiscard]] const kv_layout& layout() const noexcept {
    return layout_;
  }

  /// Block 0; the others follow.
  [[nodiscard]] float* data() noexcept {
    return values_.data();
  }

  /// As kvtide registers it: all groups share one tensor, so that any block can
  /// serve any group.
  [[nodiscard]] kvtide::kv_memory describe(const std::string& fingerprint);

private:
  kv_layout layout_;
  std::uint32_t blocks_;
  std::vector<float> values_;
};

} // namespace serve
