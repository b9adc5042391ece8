// SPDX-License-Identifier: Apache-2.0

#include "net/endpoint.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>

namespace kvtide::net {

namespace {

const sockaddr_in& as_v4(const endpoint& x) {
  return reinterpret_cast<const sockaddr_in&>(x.address);
}

const sockaddr_in6& as_v6(const endpoint& x) {
  return reinterpret_cast<const sockaddr_in6&>(x.address);
}

template <class Function>
endpoint ask(Function function, int fd) {
  auto out = endpoint{};
  out.size = sizeof(out.address);
  if (function(fd, reinterpret_cast<sockaddr*>(&out.address), &out.size) != 0)
    return {};
  return out;
}

} // namespace

result<std::vector<endpoint>> resolve(const core::peer_address& where,
                                      const std::string& option) {
  auto hints = addrinfo{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const auto port = std::to_string(where.port);
  const auto code
    = ::getaddrinfo(where.host.c_str(), port.c_str(), &hints, &found);
  if (code != 0)
    return error{
      ec::invalid_options,
      option + " is \"" + core::to_string(where)
        + "\", but that host cannot be found: "
        + (code == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(code))};
  const auto guard = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>{
    found, &::freeaddrinfo};
  auto out = std::vector<endpoint>{};
  for (const auto* x = found; x != nullptr; x = x->ai_next) {
    auto one = endpoint{};
    if (x->ai_addrlen > sizeof(one.address))
      continue;
    std::memcpy(&one.address, x->ai_addr, x->ai_addrlen);
    one.size = x->ai_addrlen;
    out.push_back(one);
  }
  if (out.empty())
    return error{ec::invalid_options, option + " is \"" + core::to_string(where)
                                        + "\", but that host has no address"};
  return out;
}

bool is_loopback(const endpoint& x) {
  if (x.address.ss_family == AF_INET)
    return ntohl(as_v4(x).sin_addr.s_addr) >> 24 == 127;
  if (x.address.ss_family != AF_INET6)
    return false;
  const auto& address = as_v6(x).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address))
    return address.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&address);
}

std::string to_string(const endpoint& x) {
  auto text = std::array<char, INET6_ADDRSTRLEN>{};
  const auto v6 = x.address.ss_family == AF_INET6;
  const void* raw = v6 ? static_cast<const void*>(&as_v6(x).sin6_addr)
                       : static_cast<const void*>(&as_v4(x).sin_addr);
  if (x.size == 0
      || ::inet_ntop(x.address.ss_family, raw, text.data(), text.size())
           == nullptr)
    return "an unknown address";
  return core::to_string({text.data(), port_of(x)});
}

endpoint peer_of(int fd) {
  return ask(::getpeername, fd);
}

endpoint self_of(int fd) {
  return ask(::getsockname, fd);
}

std::uint16_t port_of(const endpoint& x) {
  if (x.address.ss_family == AF_INET)
    return ntohs(as_v4(x).sin_port);
  if (x.address.ss_family == AF_INET6)
    return ntohs(as_v6(x).sin6_port);
  return 0;
}

} // namespace kvtide::net
