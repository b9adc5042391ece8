// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "tests/conformance/scenario.hpp"

#include <istream>
#include <string>

namespace kvtide::conformance {

/// Reads one vector file.
/// @returns `ec::invalid_argument` with "path:line: what is wrong" if the text
///          is not a vector file, also where a field or a call is unknown
[[nodiscard]] result<scenario> read_vector(std::istream& in,
                                           const std::string& path);

/// The same for a file of that name.
[[nodiscard]] result<scenario> read_vector_file(const std::string& path);

} // namespace kvtide::conformance
