// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/wake_fd.hpp"

#include <cstdint>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace serve {

kvtide::result<wake_fd> wake_fd::make() {
  const auto fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0)
    return kvtide::error{kvtide::ec::out_of_memory,
                         "the system refuses an event file descriptor: allow "
                         "more open files for this process"};
  return wake_fd{fd};
}

wake_fd::wake_fd(wake_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {
  // nop
}

wake_fd::~wake_fd() {
  if (fd_ >= 0)
    close(fd_);
}

void wake_fd::set() const noexcept {
  const auto one = std::uint64_t{1};
  // Fails only if the counter is full, and so readable anyway.
  [[maybe_unused]] const auto written = write(fd_, &one, sizeof(one));
}

void wake_fd::clear() const noexcept {
  auto count = std::uint64_t{0};
  [[maybe_unused]] const auto got = read(fd_, &count, sizeof(count));
}

} // namespace serve
