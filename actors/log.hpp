// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <spdlog/logger.h>

namespace kvtide {

/// Where the library logs: the logger that the host process registered as
/// "kvtide", else one of that name on stderr. Never stdout, which belongs to
/// the host. Any thread.
[[nodiscard]] spdlog::logger& log();

} // namespace kvtide
