// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/progress_bar.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

namespace kvtide::replay {

progress_bar::~progress_bar() {
  if (drawn_)
    std::fputs("\r\x1b[K", stderr);
}

void progress_bar::update(const progress& at) {
  const auto now = wall_clock::now();
  if (!shown_ || now < next_)
    return;
  next_ = now + std::chrono::milliseconds{100};
  drawn_ = true;
  constexpr std::size_t width = 24;
  const auto elapsed = std::chrono::duration<double>(now - start_).count();
  const auto share = std::min(
    static_cast<double>(at.rows_ended) / static_cast<double>(at.rows), 1.0);
  const auto filled = static_cast<std::size_t>(share * width);
  const auto bar = std::string(filled, '#') + std::string(width - filled, '.');
  const auto rate
    = elapsed > 0 ? static_cast<double>(at.rows_ended) / elapsed : 0.0;
  const auto simulated = static_cast<double>(at.simulated) / 1e9;
  std::fprintf(stderr,
               "\r\x1b[K[%s] %zu/%zu rows, %.0f s simulated, %.0f rows/s",
               bar.c_str(), at.rows_ended, at.rows, simulated, rate);
  if (share > 0)
    std::fprintf(stderr, ", %.0f s left", elapsed / share - elapsed);
  std::fflush(stderr);
}

} // namespace kvtide::replay
