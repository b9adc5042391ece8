// SPDX-License-Identifier: Apache-2.0

#include "kvtide/runtime.hpp"

#include <chrono>
#include <cstdio>
#include <variant>

int main() {
  auto opts = kvtide::options{};
  opts.host_bytes = 1 << 20;
  auto started = kvtide::runtime::start(opts);
  if (!started) {
    std::printf("%s\n", started.failure().text.c_str());
    return 1;
  }
  auto& runtime = started.value();
  const auto ticket = runtime.get_stats();
  if (!runtime.wait(std::chrono::seconds{20}))
    return 1;
  const auto events = runtime.poll();
  const auto* answer = std::get_if<kvtide::stats_answer>(&events.front());
  return answer != nullptr && answer->ticket == ticket ? 0 : 1;
}
