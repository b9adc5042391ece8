// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/model/weights.hpp"

#include "examples/serve/model/counter_random.hpp"

#include <cmath>

namespace serve {

namespace {

using shape = model_shape;

// Keeps the size of what goes through: a sum of `inputs` products with uniform
// weights has a third of its size in variance.
matrix draw(const counter_random& source, std::uint64_t which,
            std::size_t inputs, std::size_t outputs, float gain = 1) {
  auto res = matrix{inputs, outputs, {}};
  const auto numbers = counter_random{source.at(which)};
  const auto scale = gain * std::sqrt(3.0F / static_cast<float>(inputs));
  res.values.reserve(inputs * outputs);
  for (auto index = std::size_t{0}; index < inputs * outputs; ++index)
    res.values.push_back(scale * numbers.uniform(index));
  return res;
}

// Sharp attention: a token looks at few others, so that a single wrong key
// changes what is said.
constexpr auto query_gain = 4.0F;

} // namespace

weights::weights(std::uint64_t seed) {
  const auto source = counter_random{seed};
  auto which = std::uint64_t{0};
  // Rows are looked up, not summed: as if there were one input.
  embedding = draw(source, which++, 1, shape::vocabulary * shape::width);
  for (auto& one : layers) {
    constexpr auto queries = shape::heads * shape::head_width;
    one.query = draw(source, which++, shape::width, queries, query_gain);
    one.key = draw(source, which++, shape::width, shape::kv_width);
    one.value = draw(source, which++, shape::width, shape::kv_width);
    one.attention_out = draw(source, which++, queries, shape::width);
    one.gate = draw(source, which++, shape::width, shape::hidden);
    one.up = draw(source, which++, shape::width, shape::hidden);
    one.down = draw(source, which++, shape::hidden, shape::width);
  }
  unembedding = draw(source, which++, shape::width, shape::vocabulary);
}

} // namespace serve
