// SPDX-License-Identifier: Apache-2.0

#include "tests/net/authority.hpp"

#include <cstdlib>
#include <fstream>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <utility>

namespace kvtide::test {

namespace {

struct free_key {
  void operator()(EVP_PKEY* x) const {
    EVP_PKEY_free(x);
  }
};

struct free_certificate {
  void operator()(X509* x) const {
    X509_free(x);
  }
};

struct free_bio {
  void operator()(BIO* x) const {
    BIO_free_all(x);
  }
};

using key_ptr = std::unique_ptr<EVP_PKEY, free_key>;
using certificate_ptr = std::unique_ptr<X509, free_certificate>;
using bio_ptr = std::unique_ptr<BIO, free_bio>;

void check(bool fine) {
  if (!fine)
    throw std::runtime_error{"OpenSSL cannot make a certificate"};
}

key_ptr make_key() {
  auto out = key_ptr{EVP_EC_gen("P-256")};
  check(out != nullptr);
  return out;
}

void extend(X509* to, int what, const char* value) {
  auto* made = X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
  check(made != nullptr);
  check(X509_add_ext(to, made, -1) == 1);
  X509_EXTENSION_free(made);
}

void name(X509_NAME* what, const std::string& text) {
  check(X509_NAME_add_entry_by_txt(
          what, "CN", MBSTRING_ASC,
          reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0)
        == 1);
}

std::string pem(X509* x) {
  const auto out = bio_ptr{BIO_new(BIO_s_mem())};
  check(PEM_write_bio_X509(out.get(), x) == 1);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string pem(EVP_PKEY* x) {
  const auto out = bio_ptr{BIO_new(BIO_s_mem())};
  check(PEM_write_bio_PrivateKey(out.get(), x, nullptr, nullptr, 0, nullptr,
                                 nullptr)
        == 1);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

certificate_ptr make(const std::string& who, EVP_PKEY* key, wish what,
                     bool signs) {
  static auto serial = 0L;
  auto out = certificate_ptr{X509_new()};
  auto* x = out.get();
  check(X509_set_version(x, 2) == 1);
  check(ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial) == 1);
  X509_gmtime_adj(X509_getm_notBefore(x), what.from);
  X509_gmtime_adj(X509_getm_notAfter(x), what.to);
  check(X509_set_pubkey(x, key) == 1);
  name(X509_get_subject_name(x), who);
  extend(x, NID_basic_constraints, signs ? "critical,CA:TRUE" : "CA:FALSE");
  return out;
}

} // namespace

// -- files --------------------------------------------------------------------

scratch_folder::scratch_folder() {
  auto name
    = (std::filesystem::temp_directory_path() / "kvtide-net-XXXXXX").string();
  check(::mkdtemp(name.data()) != nullptr);
  where_ = name;
}

scratch_folder::~scratch_folder() {
  std::filesystem::remove_all(where_);
}

std::string scratch_folder::path(const std::string& name) const {
  return (where_ / name).string();
}

std::string scratch_folder::write(const std::string& name,
                                  const std::string& content) const {
  auto out = path(name);
  auto file = std::ofstream{out};
  file << content;
  std::filesystem::permissions(out, std::filesystem::perms::owner_read
                                      | std::filesystem::perms::owner_write);
  return out;
}

// -- the authority ------------------------------------------------------------

struct authority::impl {
  std::string name;
  key_ptr key = make_key();
  certificate_ptr self;
};

authority::authority(const scratch_folder& folder, const std::string& who)
  : folder_(folder), impl_(std::make_unique<impl>()) {
  impl_->name = who;
  impl_->self = make(who, impl_->key.get(), {}, true);
  check(X509_set_issuer_name(impl_->self.get(),
                             X509_get_subject_name(impl_->self.get()))
        == 1);
  check(X509_sign(impl_->self.get(), impl_->key.get(), EVP_sha256()) > 0);
  trusted_ = folder_.write(who + ".ca.pem", pem(impl_->self.get()));
}

authority::~authority() = default;

void authority::give(network_options& opts, const std::string& who, wish what) {
  const auto key = make_key();
  const auto made = make(who, key.get(), what, false);
  check(
    X509_set_issuer_name(made.get(), X509_get_subject_name(impl_->self.get()))
    == 1);
  check(X509_sign(made.get(), impl_->key.get(), EVP_sha256()) > 0);
  const auto base = impl_->name + "." + who;
  opts.certificate = folder_.write(base + ".pem", pem(made.get()));
  opts.private_key = folder_.write(base + ".key", pem(key.get()));
  opts.trusted = trusted_;
}

} // namespace kvtide::test
