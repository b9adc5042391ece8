// SPDX-License-Identifier: Apache-2.0

#include "actors/ready_fd.hpp"

#include "kvtide/waiting.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace kvtide {

result<ready_fd> ready_fd::create() {
  const auto fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0)
    return error{ec::out_of_memory,
                 std::string{"cannot make an event descriptor: "}
                   + std::strerror(errno) + "; raise the limit of open files"};
  return ready_fd{fd};
}

ready_fd::ready_fd(ready_fd&& other) noexcept
  : fd_(std::exchange(other.fd_, -1)) {
  // nop
}

ready_fd& ready_fd::operator=(ready_fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

ready_fd::~ready_fd() {
  if (fd_ >= 0)
    ::close(fd_);
}

void ready_fd::signal() const noexcept {
  const auto one = std::uint64_t{1};
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof(one));
}

std::uint64_t ready_fd::clear() const noexcept {
  auto count = std::uint64_t{0};
  return ::read(fd_, &count, sizeof(count)) > 0 ? count : 0;
}

bool ready_fd::wait(std::chrono::milliseconds timeout) const noexcept {
  const auto deadline = wait_deadline{timeout};
  for (;;) {
    const auto bounded = std::min<std::int64_t>(
      deadline.left().count(), std::numeric_limits<int>::max());
    auto what = pollfd{fd_, POLLIN, 0};
    const auto ready = ::poll(&what, 1, static_cast<int>(bounded));
    if (ready > 0)
      return true;
    if (ready == 0 || errno != EINTR)
      return false;
  }
}

} // namespace kvtide
