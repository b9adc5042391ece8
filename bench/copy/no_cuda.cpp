// SPDX-License-Identifier: Apache-2.0

/// @file
/// What bench-copy says in a build without the CUDA toolkit.

#include "bench/copy/copy_site.hpp"
#include "bench/copy/decode_feel.hpp"
#include "gpu/cuda/devices.hpp"

namespace kvtide::bench {

result<std::unique_ptr<copy_site>> make_cuda_site(const copy_options&) {
  return gpu::count_devices().failure();
}

result<std::vector<decode_row>> measure_decode(const copy_options&) {
  return gpu::count_devices().failure();
}

} // namespace kvtide::bench
