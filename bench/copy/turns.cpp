// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/turns.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <utility>

namespace kvtide::bench {

namespace {

volatile std::sig_atomic_t asked_to_end = 0;

void note_interrupt(int signal) {
  asked_to_end = 1;
  std::signal(signal, SIG_DFL);
}

} // namespace

result<std::vector<std::vector<double>>>
measure_in_turns(const std::vector<way>& ways, std::uint32_t warm_up_rounds,
                 std::uint32_t rounds) {
  auto out = std::vector<std::vector<double>>(ways.size());
  for (std::uint32_t round = 0; round < warm_up_rounds + rounds; ++round)
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const auto turn = (round + i) % ways.size();
      auto seconds = ways[turn].run();
      if (!seconds)
        return error{seconds.failure().code,
                     ways[turn].name + ": " + seconds.failure().text};
      if (round >= warm_up_rounds)
        out[turn].push_back(seconds.value());
    }
  return out;
}

result<double> time_of(const std::function<error()>& fun) {
  const auto start = std::chrono::steady_clock::now();
  auto failed = fun();
  const auto end = std::chrono::steady_clock::now();
  if (failed.code != ec::none)
    return failed;
  return std::chrono::duration<double>{end - start}.count();
}

bool interrupted() noexcept {
  return asked_to_end != 0;
}

void take_interrupts() {
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
}

} // namespace kvtide::bench
