// SPDX-License-Identifier: Apache-2.0

/// @file
/// Arithmetic whose result is the same to the last bit whenever its input is:
/// every sum has one order, whatever else is computed beside it. That is why
/// KV that is loaded can stand for KV that is computed again.

#pragma once

#include "examples/serve/model/model_shape.hpp"
#include "examples/serve/model/weights.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace serve {

/// `out = in * by`. Inputs are added in ascending order; outputs are taken in
/// strips that fit into registers.
inline void multiply(const float* in, const matrix& by, float* out) {
  constexpr auto strip = std::size_t{16};
  assert(by.outputs % strip == 0);
  for (auto first = std::size_t{0}; first < by.outputs; first += strip) {
    auto sums = std::array<float, strip>{};
    const auto* row = by.values.data() + first;
    for (auto input = std::size_t{0}; input < by.inputs; ++input) {
      for (auto lane = std::size_t{0}; lane < strip; ++lane)
        sums[lane] += in[input] * row[lane];
      row += by.outputs;
    }
    std::copy(sums.begin(), sums.end(), out + first);
  }
}

/// The product of a query and a key.
inline float dot(const float* x, const float* y) {
  constexpr auto lanes = std::size_t{4};
  auto sums = std::array<float, lanes>{};
  for (auto at = std::size_t{0}; at < model_shape::head_width; at += lanes)
    for (auto lane = std::size_t{0}; lane < lanes; ++lane)
      sums[lane] += x[at + lane] * y[at + lane];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// The exponential of a number that is not above zero, to six digits. The C
/// library's own may choose its instructions by the processor.
inline float exponential(float x) {
  constexpr auto least = -87.0F; // Below, it is as good as zero.
  if (!(x > least))
    return x <= least ? 0.0F : x;      // Not a number stays what it is.
  const auto scaled = x * 1.44269504F; // e^x = 2^scaled
  const auto whole = static_cast<std::int32_t>(scaled - 0.5F);
  const auto rest = (scaled - static_cast<float>(whole)) * 0.693147181F;
  const auto series
    = 1.0F
    + rest
        * (1.0F
           + rest
               * (0.5F
                  + rest
                      * (1.0F / 6
                         + rest
                             * (1.0F / 24
                                + rest * (1.0F / 120 + rest / 720)))));
  const auto bits = static_cast<std::uint32_t>(whole + 127) << 23U;
  auto power = 0.0F;
  std::memcpy(&power, &bits, sizeof(power));
  return series * power;
}

/// `out` is `in` at a root mean square of one.
inline void normalize(const float* in, float* out) {
  auto squares = 0.0F;
  for (auto at = std::size_t{0}; at < model_shape::width; ++at)
    squares += in[at] * in[at];
  const auto mean = squares / static_cast<float>(model_shape::width);
  const auto factor = 1.0F / std::sqrt(mean + 1e-6F);
  for (auto at = std::size_t{0}; at < model_shape::width; ++at)
    out[at] = in[at] * factor;
}

/// x * sigmoid(x)
inline float swish(float x) {
  const auto small = exponential(x < 0 ? x : -x);
  return x < 0 ? x * small / (1 + small) : x / (1 + small);
}

} // namespace serve
