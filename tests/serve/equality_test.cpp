// SPDX-License-Identifier: Apache-2.0

#include "tests/serve/equality.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <tuple>

namespace serve::test {
namespace {

/// Straight answers are the same for all situations.
const known_answers& known_for(model_variant variant) {
  constexpr auto prompts = std::size_t{75};
  static const auto full
    = answer_straight(model_variant::full_attention, 1, prompts);
  static const auto sliding
    = answer_straight(model_variant::sliding_window, 2, prompts);
  return variant == model_variant::full_attention ? full : sliding;
}

using parameters = std::tuple<model_variant, situation>;

class Equality : public ::testing::TestWithParam<parameters> {};

TEST_P(Equality, AnswersAreThoseOfAStraightComputation) {
  const auto [variant, what] = GetParam();
  const auto res = compare(known_for(variant), what);
  for (const auto& fault : res.faults)
    ADD_FAILURE() << fault;
  if (HasFailure())
    std::fputs(make_table({res}).c_str(), stdout);
}

std::string name_of(const ::testing::TestParamInfo<parameters>& info) {
  const auto [variant, what] = info.param;
  auto word = std::string{to_word(what)};
  std::replace(word.begin(), word.end(), ' ', '_');
  const auto* model
    = variant == model_variant::full_attention ? "full_" : "sliding_";
  return model + word;
}

INSTANTIATE_TEST_SUITE_P(
  Serve, Equality,
  ::testing::Combine(::testing::Values(model_variant::full_attention,
                                       model_variant::sliding_window),
                     ::testing::ValuesIn(all_situations)),
  name_of);

} // namespace
} // namespace serve::test
