// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_machine.hpp"
#include "tests/gpu/cuda_rig.hpp"
#include "tests/gpu/engine_kinds.hpp"

#include <memory>
#include <utility>

namespace kvtide::gpu {

namespace {

template <bool Pinned>
std::unique_ptr<memory_home> make_cuda_home(std::size_t block_bytes,
                                            std::size_t slot_bytes) {
  return std::make_unique<cuda_home>(block_bytes, slot_bytes, Pinned);
}

template <copy_path Path, fence_wait Wait>
std::unique_ptr<engine_rig> make_rig(host_engine_config config,
                                     memory_home& memory) {
  return std::make_unique<cuda_rig>(std::move(config), memory,
                                    [](cuda_engine_config& x) {
                                      x.path = Path;
                                      x.fences = Wait;
                                      // Both paths in one batch.
                                      x.kernel_below = 512;
                                    });
}

/// Slices so small, and so few bytes under way, that everything waits for room.
std::unique_ptr<engine_rig> make_narrow_rig(host_engine_config config,
                                            memory_home& memory) {
  return std::make_unique<cuda_rig>(std::move(config), memory,
                                    [](cuda_engine_config& x) {
                                      x.path = copy_path::batch;
                                      x.slice_bytes = 48;
                                      x.bytes_in_flight = 96;
                                    });
}

engine_kind cuda_kind(const char* name, test_memory::home_maker home,
                      std::unique_ptr<engine_rig> (*make)(host_engine_config,
                                                          memory_home&)) {
  auto kind = engine_kind{};
  kind.name = name;
  kind.start = start_cuda_machine;
  kind.missing = missing_cuda_machine;
  kind.check = check_cuda_machine;
  kind.many = many_fragments();
  kind.make_home = home;
  kind.make = make;
  return kind;
}

} // namespace

std::vector<engine_kind> engine_kinds() {
  constexpr auto pinned = make_cuda_home<true>;
  constexpr auto plain = make_cuda_home<false>;
  auto pageable = cuda_kind("cuda_pageable", plain,
                            make_rig<copy_path::automatic, fence_wait::stream>);
  pageable.hangs_together = host_functions_share_a_thread();
  return {
    cuda_kind("cuda_batch", pinned,
              make_rig<copy_path::batch, fence_wait::stream>),
    cuda_kind("cuda_plain", pinned,
              make_rig<copy_path::plain, fence_wait::stream>),
    cuda_kind("cuda_kernel", pinned,
              make_rig<copy_path::kernel, fence_wait::stream>),
    cuda_kind("cuda_automatic", pinned,
              make_rig<copy_path::automatic, fence_wait::stream>),
    cuda_kind("cuda_narrow", pinned, make_narrow_rig),
    cuda_kind("cuda_host_fence", pinned,
              make_rig<copy_path::batch, fence_wait::host>),
    pageable,
  };
}

} // namespace kvtide::gpu
