// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include <string>
#include <vector>

namespace kvtide::conformance {

/// Files as they are, and below directories every "*.jsonl", sorted.
/// @returns an error with one sentence if a path does not exist, cannot be
///          read, is neither file nor directory, or is a directory without such
///          files
[[nodiscard]] result<std::vector<std::string>>
find_vector_files(const std::vector<std::string>& paths);

} // namespace kvtide::conformance
