// SPDX-License-Identifier: Apache-2.0

#include "net/tls_errors.hpp"

#include <openssl/err.h>
#include <openssl/sslerr.h>

namespace kvtide::net {

void forget_tls_errors() {
  ERR_clear_error();
}

std::string tls_errors() {
  auto out = std::string{};
  while (const auto code = ERR_get_error()) {
    // Who closes a connection need not say good-bye first.
    if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
      continue;
    const auto* text = ERR_reason_error_string(code);
    // The first one is the cause, what follows are its callers.
    if (out.empty() && text != nullptr)
      out = text;
  }
  return out;
}

} // namespace kvtide::net
