// SPDX-License-Identifier: Apache-2.0

/// @file
/// Many requests, a third of which are aborted at moments that a seed chooses:
/// nothing is left, and nobody else's answer is disturbed.

#include "examples/serve/model/counter_random.hpp"
#include "tests/serve/engine_fixture.hpp"
#include "tests/serve/prompts.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace serve::test {
namespace {

using parameters = std::tuple<model_variant, std::uint64_t>;

class EngineStorm : public engine_test,
                    public ::testing::WithParamInterface<parameters> {};

TEST_P(EngineStorm, LeavesNothingAndDisturbsNobody) {
  const auto [variant, seed] = GetParam();
  opts.variant = variant;
  opts.device_blocks = 64;
  opts.host_bytes = 2'000'000; // Some dozens of chunks: things are evicted.
  opts.max_batch = 8;
  opts.copy_latency = std::chrono::microseconds{500};
  start();
  const auto prompts = make_prompts(seed, 100);
  auto chance = counter_random{seed};
  constexpr auto rounds = std::uint64_t{3};
  for (auto n = std::uint64_t{0}; n < rounds * prompts.size(); ++n) {
    ASSERT_TRUE(got->wait_for_open(40));
    const auto& what = prompts[n % prompts.size()];
    const auto dice = chance.at(n);
    const auto moment = dice % 12;
    const auto bytes = 1 + dice / 12 % 20;
    const auto index = got->ask(
      what, [this, moment, bytes](completion_id id, std::size_t now) {
        if (moment == 1 && now == bytes)
          engine->abort(id);
      });
    ASSERT_TRUE(index);
    // At once; in the middle of its answer (above); or when somebody who was
    // there before has gone on: then it is anywhere.
    if (moment == 0)
      engine->abort(got->at(*index).id);
    if (moment == 2 || moment == 3) {
      const auto before
        = *index - std::min<std::size_t>(*index, dice / 12 % 30);
      ASSERT_TRUE(got->wait_for_text(before, bytes % 8));
      engine->abort(got->at(*index).id);
    }
  }
  ASSERT_TRUE(got->wait_for_open(0));
  const auto last = expect_clean_end();
  EXPECT_GT(last.aborted, 20u);
  EXPECT_GT(last.loads_done, 0u);
  const auto all = got->all();
  auto texts = std::vector<std::string>{};
  for (const auto& what : prompts)
    texts.push_back(straight(what));
  for (auto index = std::size_t{0}; index < all.size(); ++index) {
    const auto& right = texts[index % texts.size()];
    if (all[index].end == completion_end::length)
      EXPECT_EQ(all[index].text, right) << "request " << index;
    else
      EXPECT_EQ(all[index].text, right.substr(0, all[index].text.size()))
        << "request " << index;
  }
}

INSTANTIATE_TEST_SUITE_P(
  Seeds, EngineStorm,
  ::testing::Combine(::testing::Values(model_variant::full_attention,
                                       model_variant::sliding_window),
                     ::testing::Range(std::uint64_t{1}, std::uint64_t{5})));

} // namespace
} // namespace serve::test
