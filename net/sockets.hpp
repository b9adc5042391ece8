// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "net/endpoint.hpp"
#include "net/unique_fd.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace kvtide::net {

/// Listens on the first of `where` that can be had.
/// @param name the address as somebody wrote it
/// @returns `ec::invalid_options` with what the system said
[[nodiscard]] result<unique_fd> listen_on(const std::vector<endpoint>& where,
                                          const std::string& name);

/// Starts to connect; does not wait.
/// @returns nothing if the system refused, see `errno`
[[nodiscard]] unique_fd start_to_connect(const endpoint& where);

/// How the attempt ended: an `errno`, zero if it is connected.
[[nodiscard]] int connect_outcome(int fd);

/// Makes the kernel give a connection up whose peer takes or answers nothing
/// for `patience`, so that none lasts for ever and nothing waits for one.
void bound_patience(int fd, std::chrono::milliseconds patience);

} // namespace kvtide::net
