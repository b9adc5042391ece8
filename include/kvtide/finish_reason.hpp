// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

namespace kvtide {

/// How a request ended.
enum class finish_reason : std::uint8_t {
  stop,
  length,
  repetition,
  abort,
  error,
  ignored,
};

} // namespace kvtide
