// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/progress.hpp"

#include <cstdio>
#include <unistd.h>
#include <utility>

namespace kvtide::bench {

namespace {

/// Between lines of a log.
constexpr auto now_and_then = std::chrono::seconds{5};

} // namespace

progress::progress(std::string name, std::size_t steps)
  : name_(std::move(name)), steps_(steps), terminal_(::isatty(2) != 0) {
  // nop
}

progress::~progress() {
  if (terminal_ && step_ > 0)
    std::fputs("\r\033[K", stderr);
}

void progress::next(const std::string& what) {
  ++step_;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ && step_ > 1 && now - told_ < now_and_then)
    return;
  told_ = now;
  std::fprintf(stderr, "%s%s %zu/%zu: %s%s", terminal_ ? "\r\033[K" : "",
               name_.c_str(), step_, steps_, what.c_str(),
               terminal_ ? "" : "\n");
  std::fflush(stderr);
}

} // namespace kvtide::bench
