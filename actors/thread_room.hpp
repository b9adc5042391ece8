// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"

#include <cstddef>

namespace kvtide {

/// Tries to start so many threads at once, and lets them end again. CAF knows
/// no way back from a thread that the system refuses: the process would hang or
/// end. Somebody else may take the room before it is used.
/// @returns `ec::out_of_memory` with what to change if one is refused
[[nodiscard]] error check_thread_room(std::size_t count);

} // namespace kvtide
