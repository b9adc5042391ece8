// SPDX-License-Identifier: Apache-2.0

#include "net/tls_errors.hpp"

#include <openssl/err.h>

namespace kvtide::net {

void forget_tls_errors() {
  ERR_clear_error();
}

std::string tls_errors() {
  auto out = std::string{};
  while (const auto code = ERR_get_error()) {
    const auto* text = ERR_reason_error_string(code);
    // The first one is the cause, what follows are its callers.
    if (out.empty() && text != nullptr)
      out = text;
  }
  return out;
}

} // namespace kvtide::net
