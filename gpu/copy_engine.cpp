// SPDX-License-Identifier: Apache-2.0

#include "gpu/copy_engine.hpp"

namespace kvtide::gpu {

copy_engine::~copy_engine() = default;

void copy_engine::advance(nanoseconds_t) {
  // nop
}

bool copy_engine::advanced() const {
  return true;
}

nanoseconds_t copy_engine::next_due() const {
  return never;
}

} // namespace kvtide::gpu
