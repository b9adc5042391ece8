// SPDX-License-Identifier: Apache-2.0

#include "tests/serve/prompts.hpp"

#include "examples/serve/model/counter_random.hpp"

#include <string>

namespace serve::test {

std::vector<completion_request> make_prompts(std::uint64_t seed,
                                             std::size_t count) {
  const auto chance = counter_random{seed};
  auto next = std::uint64_t{0};
  const auto roll = [&](std::size_t sides) {
    return static_cast<std::size_t>(chance.at(next++) % sides);
  };
  const auto text = [&](std::size_t size) {
    auto res = std::string{};
    while (res.size() < size)
      res.push_back(static_cast<char>(roll(256)));
    return res;
  };
  // A tree of shared starts: each continues one before it, or nothing.
  auto starts = std::vector<std::string>{""};
  const auto families = count / 12 + 1;
  while (starts.size() <= families) {
    auto start = starts[roll(starts.size())];
    if (start.size() > 160)
      start.resize(160 - roll(40)); // Not on a block's border either.
    starts.push_back(start + text(20 + roll(90)));
  }
  auto res = std::vector<completion_request>{};
  while (res.size() < count) {
    auto& one = res.emplace_back();
    one.prompt = starts[roll(starts.size())] + text(1 + roll(70));
    one.max_tokens = static_cast<std::int32_t>(1 + roll(24));
    if (roll(10) == 0)
      one.cache_salt = "tenant " + std::to_string(roll(2));
  }
  return res;
}

} // namespace serve::test
