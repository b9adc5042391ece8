// SPDX-License-Identifier: Apache-2.0

#include "gpu/copy_engine.hpp"

namespace kvtide::gpu {

copy_engine::~copy_engine() = default;

} // namespace kvtide::gpu
