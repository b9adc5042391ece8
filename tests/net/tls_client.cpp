// SPDX-License-Identifier: Apache-2.0

#include "tests/net/tls_client.hpp"

#include <memory>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace kvtide::test {

tls_outcome try_tls(const std::string& address, const network_options& who,
                    int newest, bool renegotiate) {
  auto out = tls_outcome{};
  const auto context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>{
    SSL_CTX_new(TLS_client_method()), &SSL_CTX_free};
  // Whatever the other side allows: it is what is tested.
  SSL_CTX_set_security_level(context.get(), 0);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
  if (newest != 0)
    SSL_CTX_set_max_proto_version(context.get(), newest);
  if (!who.certificate.empty()) {
    SSL_CTX_use_certificate_chain_file(context.get(), who.certificate.c_str());
    SSL_CTX_use_PrivateKey_file(context.get(), who.private_key.c_str(),
                                SSL_FILETYPE_PEM);
  }
  const auto link = std::unique_ptr<BIO, decltype(&BIO_free_all)>{
    BIO_new_ssl_connect(context.get()), &BIO_free_all};
  BIO_set_conn_hostname(link.get(), address.c_str());
  if (BIO_do_handshake(link.get()) == 1) {
    SSL* session = nullptr;
    BIO_get_ssl(link.get(), &session);
    out.version = SSL_get_version(session);
    if (renegotiate)
      out.renegotiated
        = SSL_renegotiate(session) == 1 && SSL_do_handshake(session) == 1;
    auto byte = char{};
    out.let_in = SSL_read(session, &byte, 1) == 1;
  }
  ERR_clear_error();
  return out;
}

} // namespace kvtide::test
