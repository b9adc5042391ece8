// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/model/transformer.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace serve {

/// What the model says to a prompt, computed from the first token to the last
/// without an engine around it: no batches, no blocks, no cache.
/// @pre neither is empty, and both fit into the model's longest request
[[nodiscard]] std::string straight_answer(const transformer& model,
                                          std::string_view prompt,
                                          std::int32_t tokens);

} // namespace serve
