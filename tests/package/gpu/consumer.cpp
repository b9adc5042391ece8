// SPDX-License-Identifier: Apache-2.0

#include "kvtide/gpu.hpp"

#if __cplusplus >= 202002L
#error "the public headers promise C++17"
#endif

#include <cstdio>
#include <utility>

int main() {
  using namespace kvtide;
  auto memory = gpu::device_memory::allocate(gpu::host_device, 4 << 10);
  auto opts = gpu::copier_options{};
  opts.host_bytes = 1 << 20;
  auto started = gpu::copier::start(std::move(opts));
  if (!memory || !started)
    return 1;
  auto kv = kv_memory{};
  kv.tensors = {{memory.value().data(), 4 << 10, memory.value().kind(), 4,
                 1 << 10, 1 << 10}};
  kv.references = {{0, 0, 0, 0, 1 << 10}};
  const auto pool = started.value().register_kv(kv);
  if (!pool) {
    std::printf("%s: %s\n", to_string(pool.failure().code),
                pool.failure().text.c_str());
    return 1;
  }
  // Without a GPU, or built without CUDA: a sentence, and nothing else.
  const auto gpus = gpu::device_count();
  return gpus.ok() || !gpus.failure().text.empty() ? 0 : 1;
}
