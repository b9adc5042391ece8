// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include <functional>
#include <string>
#include <vector>

namespace kvtide::conformance {

/// Files as they are, and below directories every "*.jsonl", sorted: also a
/// link that leads nowhere, so that reading it fails. Links to directories are
/// not followed.
/// @param skipped is told, in one sentence each, what the search leaves out
///                although it may hold vectors or has their name
/// @returns an error with one sentence if a path does not exist, cannot be
///          read, is neither file nor directory, or is a directory without such
///          files
[[nodiscard]] result<std::vector<std::string>>
find_vector_files(const std::vector<std::string>& paths,
                  const std::function<void(const std::string&)>& skipped);

} // namespace kvtide::conformance
