// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <string>

namespace kvtide::net {

/// OpenSSL keeps errors per thread, and takes those that somebody left for
/// errors of the next connection: without this, one bad peer would end the
/// connections of others. Before each use of a session.
void forget_tls_errors();

/// What went wrong on this thread since then, e.g. "certificate verify failed";
/// empty if OpenSSL has nothing to say.
[[nodiscard]] std::string tls_errors();

} // namespace kvtide::net
