// SPDX-License-Identifier: Apache-2.0

#include "net/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace kvtide::net {

namespace {

constexpr auto socket_kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

void set(int fd, int level, int option, int value) {
  // What it is for is a bound more; without it the heartbeats still bound.
  [[maybe_unused]] const auto refused
    = ::setsockopt(fd, level, option, &value, sizeof(value));
}

unique_fd try_to_listen(const endpoint& where) {
  auto fd = unique_fd{::socket(where.address.ss_family, socket_kind, 0)};
  if (!fd)
    return {};
  // A process that is started again takes its port back at once.
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd.get(), where.get(), where.size) != 0
      || ::listen(fd.get(), SOMAXCONN) != 0)
    return {};
  return fd;
}

} // namespace

result<unique_fd> listen_on(const std::vector<endpoint>& where,
                            const std::string& name) {
  for (const auto& one : where)
    if (auto fd = try_to_listen(one))
      return fd;
  const auto why = errno;
  return error{ec::invalid_options,
               "cannot listen on " + name + ": " + std::strerror(why)
                 + (why == EADDRINUSE ? "; stop who has the port, or name "
                                        "another one"
                                      : "")};
}

unique_fd start_to_connect(const endpoint& where) {
  auto fd = unique_fd{::socket(where.address.ss_family, socket_kind, 0)};
  if (!fd)
    return {};
  if (::connect(fd.get(), where.get(), where.size) != 0 && errno != EINPROGRESS)
    return {};
  return fd;
}

int connect_outcome(int fd) {
  auto out = 0;
  auto size = socklen_t{sizeof(out)};
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &out, &size) != 0)
    return errno;
  return out;
}

void bound_patience(int fd, std::chrono::milliseconds patience) {
  const auto ms = static_cast<int>(patience.count());
  const auto seconds = std::max(1, (ms + 999) / 1'000);
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
}

} // namespace kvtide::net
