// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/network.hpp"
#include "kvtide/result.hpp"

#include <string>
#include <vector>

namespace kvtide::net {

/// True if `opts` name certificates.
[[nodiscard]] bool uses_tls(const network_options& opts);

/// Reads all files as CAF will: it ends the process over some faults.
/// @returns `ec::invalid_options` with the option, the file and the reason
[[nodiscard]] error fault_of_certificates(const network_options& opts);

/// What is not wrong but should not stay so: one sentence each.
[[nodiscard]] std::vector<std::string>
certificate_warnings(const network_options& opts);

} // namespace kvtide::net
