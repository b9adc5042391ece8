// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/cuda_engine.hpp"

#include "gpu/cuda/cuda_copy_engine.hpp"

#include <utility>

namespace kvtide::bench {

result<std::unique_ptr<engine_owner>>
make_cuda_engine(const copy_options& options, copy_path path,
                 std::shared_ptr<gpu::pool_registration> pool) {
  auto events = gpu::compute_events::make(options.gpu);
  if (!events)
    return events.failure();
  auto config = gpu::cuda_engine_config{};
  config.device = options.gpu;
  config.events = std::move(events).value();
  config.pool = std::move(pool);
  config.path = path;
  if (options.quick) {
    config.slice_bytes = 1u << 20;
    config.kernel_below = 16u << 10;
  }
  return engine_owner::make([&config](gpu::wake_function wake) {
    config.wake = std::move(wake);
    return gpu::make_cuda_copy_engine(std::move(config));
  });
}

} // namespace kvtide::bench
