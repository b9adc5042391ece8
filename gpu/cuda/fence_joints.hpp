// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "gpu/cuda/event.hpp"
#include "gpu/cuda/stream.hpp"

#include <cstddef>
#include <vector>

namespace kvtide::gpu {

/// Events that fences hand out. Each lies behind a stream of its own that waits
/// for the ends of the fence's jobs, so that no fence waits for what another
/// one waits for (docs/decisions/0010).
class fence_joints {
public:
  /// Makes some now rather than while serving.
  [[nodiscard]] error reserve(std::size_t count);

  /// Records an event behind `ends`. Nobody hears of it before that (G2).
  /// @returns null if the device refuses
  [[nodiscard]] cudaEvent_t join(step_id step,
                                 const std::vector<cudaEvent_t>& ends);

  /// Compute of earlier steps has been told to wait: `begin_step` of this one
  /// is behind their `end_step` (G2, S6).
  void take_back(step_id step);

  /// Leaks them (G7).
  void abandon() noexcept;

private:
  struct joint {
    cuda_stream where;
    cuda_event end;
    bool recorded = false;
  };

  struct handed_out {
    step_id step = 0;
    joint what;
  };

  [[nodiscard]] static result<joint> make();

  /// One whose work is over, or a new one.
  [[nodiscard]] result<joint> take();

  std::vector<joint> free_;
  std::vector<handed_out> handed_out_;
};

} // namespace kvtide::gpu
