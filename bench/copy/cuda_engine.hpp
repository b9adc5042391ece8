// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "bench/copy/engine_owner.hpp"
#include "bench/copy/options.hpp"
#include "gpu/cuda/pool_registration.hpp"

#include <memory>

namespace kvtide::bench {

/// Makes a CUDA engine with the defaults of the library, but for its path.
[[nodiscard]] result<std::unique_ptr<engine_owner>>
make_cuda_engine(const copy_options& options, copy_path path,
                 std::shared_ptr<gpu::pool_registration> pool);

} // namespace kvtide::bench
