// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/engine/completion.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace serve::test {

/// Makes requests as a server gets them: most share the start of their prompt
/// with others, lengths differ, and some salts do.
/// @param count all different, as far as chance goes
[[nodiscard]] std::vector<completion_request> make_prompts(std::uint64_t seed,
                                                           std::size_t count);

} // namespace serve::test
