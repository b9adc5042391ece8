// SPDX-License-Identifier: Apache-2.0

#include "tests/serve_http/raw_client.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>

namespace serve {

raw_client::raw_client(std::uint16_t port, int receive_bytes)
  : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const auto patience = timeval{10, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (receive_bytes > 0)
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes,
                 sizeof receive_bytes);
  auto address = sockaddr_in{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address),
                sizeof address)
      != 0)
    close();
}

raw_client::~raw_client() {
  close();
}

bool raw_client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool raw_client::more() {
  char buffer[4'096];
  const auto got = ::recv(socket_, buffer, sizeof buffer, 0);
  if (got <= 0)
    return false;
  read_.append(buffer, static_cast<std::size_t>(got));
  return true;
}

bool raw_client::take_line(std::string& line) {
  auto end = read_.find("\r\n");
  while (end == std::string::npos) {
    if (!more())
      return false;
    end = read_.find("\r\n");
  }
  line = read_.substr(0, end);
  read_.erase(0, end + 2);
  return true;
}

bool raw_client::take(std::size_t bytes, std::string& to) {
  while (read_.size() < bytes)
    if (!more())
      return false;
  to.append(read_, 0, bytes);
  read_.erase(0, bytes);
  return true;
}

raw_answer raw_client::receive(bool head) {
  auto line = std::string{};
  auto out = raw_answer{};
  if (!take_line(line) || line.size() < 12)
    return {};
  out.status = std::atoi(line.c_str() + 9);
  while (take_line(line) && !line.empty()) {
    auto name = line.substr(0, line.find(':'));
    for (auto& letter : name)
      if (letter >= 'A' && letter <= 'Z')
        letter = static_cast<char>(letter + 32);
    out.fields[name] = line.substr(name.size() + 2);
  }
  if (head || out.status == 100)
    return out;
  if (out.fields.count("transfer-encoding") > 0) {
    while (take_line(line)) {
      const auto size = std::strtoul(line.c_str(), nullptr, 16);
      if (!take(size, out.body) || !take_line(line) || !line.empty())
        return {};
      if (size == 0)
        return out;
    }
    return {};
  }
  if (out.fields.count("content-length") > 0) {
    const auto size
      = std::strtoul(out.fields["content-length"].c_str(), nullptr, 10);
    return take(size, out.body) ? out : raw_answer{};
  }
  while (more()) {
    // Until the server closes.
  }
  out.body = std::exchange(read_, {});
  return out;
}

bool raw_client::await(std::string_view text) {
  while (read_.find(text) == std::string::npos)
    if (!more())
      return false;
  return true;
}

bool raw_client::skip(std::string_view text) {
  if (!await(text))
    return false;
  read_.erase(0, read_.find(text) + text.size());
  return true;
}

bool raw_client::closed() {
  if (!read_.empty())
    return false;
  char byte = 0;
  const auto got = ::recv(socket_, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

void raw_client::close_sending() {
  ::shutdown(socket_, SHUT_WR);
}

void raw_client::close() {
  if (socket_ >= 0)
    ::close(std::exchange(socket_, -1));
}

void raw_client::reset() {
  const auto at_once = linger{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

std::string post(std::string_view body, std::string_view fields) {
  auto out = std::string{"POST /v1/completions HTTP/1.1\r\nHost: test\r\n"
                         "Content-Type: application/json\r\nContent-Length: "};
  out += std::to_string(body.size());
  out += "\r\n";
  out += fields;
  out += "\r\n";
  out += body;
  return out;
}

std::string get(std::string_view target, std::string_view fields) {
  auto out = std::string{"GET "};
  out += target;
  out += " HTTP/1.1\r\nHost: test\r\n";
  out += fields;
  out += "\r\n";
  return out;
}

} // namespace serve
