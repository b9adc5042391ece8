// SPDX-License-Identifier: Apache-2.0

#include "tests/net/intruder.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <memory>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace kvtide::test {

intruder::intruder(const std::string& address) {
  const auto colon = address.rfind(':');
  auto where = sockaddr_in{};
  where.sin_family = AF_INET;
  where.sin_port
    = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &where.sin_addr);
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof(where))
      != 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

intruder::intruder(intruder&& other) noexcept
  : fd_(std::exchange(other.fd_, -1)) {
  // nop
}

intruder& intruder::operator=(intruder&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

intruder::~intruder() {
  if (fd_ >= 0)
    ::close(fd_);
}

bool intruder::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void intruder::end() const {
  ::shutdown(fd_, SHUT_WR);
}

bool intruder::closed(std::chrono::milliseconds within) const {
  auto dropped = std::array<char, 4'096>{};
  for (;;) {
    auto what = pollfd{fd_, POLLIN, 0};
    if (::poll(&what, 1, static_cast<int>(within.count())) <= 0)
      return false;
    if (::recv(fd_, dropped.data(), dropped.size(), 0) <= 0)
      return true;
  }
}

std::string client_hello() {
  const auto context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>{
    SSL_CTX_new(TLS_client_method()), &SSL_CTX_free};
  const auto session = std::unique_ptr<SSL, decltype(&SSL_free)>{
    SSL_new(context.get()), &SSL_free};
  auto* out = BIO_new(BIO_s_mem());
  SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), out);
  SSL_connect(session.get()); // Nobody answers.
  char* text = nullptr;
  const auto size = BIO_get_mem_data(out, &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string frame(unsigned operation, unsigned payload_size) {
  auto out = std::string(32, '\0');
  out[0] = static_cast<char>(operation);
  for (std::size_t i = 0; i < 4; ++i)
    out[4 + i] = static_cast<char>(payload_size >> (8 * (3 - i)));
  return out;
}

} // namespace kvtide::test
