// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/cuda_memory.hpp"

#include <utility>

namespace kvtide::bench {

error cuda_memory::take(std::shared_ptr<gpu::pool_registration> pool,
                        std::uint64_t bytes) {
  auto blocks = gpu::make_device_buffer(2 * bytes);
  if (!blocks)
    return blocks.failure();
  blocks_ = std::move(blocks).value();
  auto how = gpu::host_memory_options{};
  how.reserve = true;
  how.prefault = true;
  auto slots = gpu::host_memory::map(bytes, how);
  if (!slots)
    return slots.failure();
  slots_ = std::move(slots).value();
  if (auto refused = pool->add(slots_.data(), bytes); refused.code != ec::none)
    return refused;
  pool_ = std::move(pool);
  return {};
}

cuda_memory::~cuda_memory() {
  if (pool_)
    pool_->remove(slots_.data());
}

} // namespace kvtide::bench
