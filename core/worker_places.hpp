// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"
#include "kvtide/result.hpp"

#include <string>
#include <vector>

namespace kvtide::core {

/// True if the worker of `rank` lives in the process of the runtime.
/// @pre `fault_of_workers(opts)` is `ec::none`
[[nodiscard]] bool is_here(const options& opts, rank_id rank);

/// True if the worker of any rank lives elsewhere.
[[nodiscard]] bool any_elsewhere(const options& opts);

/// What is wrong with `options::workers` and `options::network` of a runtime;
/// `ec::none` if they fit each other and the rest.
[[nodiscard]] error fault_of_workers(const options& opts);

/// What is wrong with the ranks of one worker process.
/// @param opts what it shares with the engine; `ranks` was checked
[[nodiscard]] error fault_of_hosted(const options& opts,
                                    const std::vector<rank_id>& hosted);

/// The addresses to dial, each once.
[[nodiscard]] std::vector<std::string> dialed_addresses(const options& opts);

} // namespace kvtide::core
