// SPDX-License-Identifier: Apache-2.0

#include "net/certificates.hpp"

#include "net/tls_errors.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

namespace kvtide::net {

namespace {

template <class T, void (*Free)(T*)>
struct freed_by {
  void operator()(T* x) const {
    Free(x);
  }
};

template <class T, void (*Free)(T*)>
using owned = std::unique_ptr<T, freed_by<T, Free>>;

using bio_ptr = owned<BIO, BIO_free_all>;
using certificate_ptr = owned<X509, X509_free>;
using key_ptr = owned<EVP_PKEY, EVP_PKEY_free>;
using context_ptr = owned<SSL_CTX, SSL_CTX_free>;

/// One of the files that `network_options` name.
struct file {
  const char* option;
  const std::string& path;

  [[nodiscard]] error wrong(const std::string& what) const {
    return {ec::invalid_options,
            std::string{option} + " is \"" + path + "\": " + what};
  }
};

bio_ptr open_file(const file& x, error& fault) {
  auto out = bio_ptr{BIO_new_file(x.path.c_str(), "r")};
  if (out == nullptr)
    fault = x.wrong(std::string{"cannot read it: "} + std::strerror(errno));
  return out;
}

certificate_ptr read_certificate(BIO* from) {
  forget_tls_errors();
  return certificate_ptr{PEM_read_bio_X509(from, nullptr, nullptr, nullptr)};
}

/// OpenSSL would ask on the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

std::string text_of(const ASN1_TIME* time) {
  const auto out = bio_ptr{BIO_new(BIO_s_mem())};
  if (out == nullptr || ASN1_TIME_print(out.get(), time) != 1)
    return "an unknown time";
  char* text = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

/// @returns an empty string if it is valid now
std::string fault_of_time(const X509* x) {
  const auto* from = X509_get0_notBefore(x);
  const auto* to = X509_get0_notAfter(x);
  if (X509_cmp_current_time(from) > 0)
    return "it is not valid before " + text_of(from)
         + "; is this machine's clock right?";
  if (X509_cmp_current_time(to) < 0)
    return "it expired on " + text_of(to) + "; make a new one";
  return {};
}

error fault_of_pair(const file& certificate, const file& key) {
  auto fault = error{};
  const auto text = open_file(certificate, fault);
  if (text == nullptr)
    return fault;
  const auto leaf = read_certificate(text.get());
  if (leaf == nullptr)
    return certificate.wrong("it has no certificate in PEM: " + tls_errors());
  if (auto what = fault_of_time(leaf.get()); !what.empty())
    return certificate.wrong(what);
  const auto key_text = open_file(key, fault);
  if (key_text == nullptr)
    return fault;
  forget_tls_errors();
  const auto secret = key_ptr{
    PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_passphrase, nullptr)};
  if (secret == nullptr)
    return key.wrong("it has no private key in PEM without a passphrase: "
                     + tls_errors());
  if (X509_check_private_key(leaf.get(), secret.get()) != 1)
    return key.wrong("it is not the key of the certificate in \""
                     + certificate.path + "\"");
  return {};
}

error fault_of_trusted(const file& trusted) {
  auto fault = error{};
  const auto text = open_file(trusted, fault);
  if (text == nullptr)
    return fault;
  auto count = 0;
  for (auto one = read_certificate(text.get()); one != nullptr;
       one = read_certificate(text.get())) {
    count += 1;
    if (const auto what = fault_of_time(one.get()); !what.empty())
      return trusted.wrong("certificate " + std::to_string(count)
                           + " in it: " + what);
  }
  // The end of the file is an error of its own.
  if (const auto what = tls_errors(); what != "no start line")
    return trusted.wrong("certificate " + std::to_string(count + 1)
                         + " in it is damaged: " + what);
  if (count == 0)
    return trusted.wrong("it has no certificate in PEM; then nobody may join");
  return {};
}

/// What OpenSSL itself thinks of them, such as of keys that are too short.
error fault_of_use(const file& certificate, const file& key,
                   const file& trusted) {
  forget_tls_errors();
  const auto context = context_ptr{SSL_CTX_new(TLS_method())};
  if (context == nullptr)
    return {ec::out_of_memory, "OpenSSL cannot start: " + tls_errors()};
  if (SSL_CTX_use_certificate_chain_file(context.get(),
                                         certificate.path.c_str())
      != 1)
    return certificate.wrong("OpenSSL refuses it: " + tls_errors());
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.path.c_str(),
                                  SSL_FILETYPE_PEM)
      != 1)
    return key.wrong("OpenSSL refuses it: " + tls_errors());
  if (SSL_CTX_load_verify_locations(context.get(), trusted.path.c_str(),
                                    nullptr)
      != 1)
    return trusted.wrong("OpenSSL refuses it: " + tls_errors());
  return {};
}

} // namespace

bool uses_tls(const network_options& opts) {
  return !opts.certificate.empty();
}

error fault_of_certificates(const network_options& opts) {
  const auto certificate = file{"certificate", opts.certificate};
  const auto key = file{"private_key", opts.private_key};
  const auto trusted = file{"trusted", opts.trusted};
  const auto named = static_cast<int>(!opts.certificate.empty())
                   + static_cast<int>(!opts.private_key.empty())
                   + static_cast<int>(!opts.trusted.empty());
  if (named == 0)
    return {};
  if (named != 3)
    return {ec::invalid_options, "certificate, private_key and trusted belong "
                                 "together: name all three files or none"};
  if (auto fault = fault_of_pair(certificate, key); fault.code != ec::none)
    return fault;
  if (auto fault = fault_of_trusted(trusted); fault.code != ec::none)
    return fault;
  return fault_of_use(certificate, key, trusted);
}

std::vector<std::string> certificate_warnings(const network_options& opts) {
  auto out = std::vector<std::string>{};
  struct stat facts {};
  if (!opts.private_key.empty() && ::stat(opts.private_key.c_str(), &facts) == 0
      && (facts.st_mode & (S_IRGRP | S_IROTH | S_IWGRP | S_IWOTH)) != 0)
    out.push_back("private_key is \"" + opts.private_key
                  + "\": others may read or write it; chmod 600");
  return out;
}

} // namespace kvtide::net
