// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/model/counter_random.hpp"
#include "examples/serve/model/exact_math.hpp"
#include "examples/serve/model/paged_kv.hpp"
#include "examples/serve/model/straight_answer.hpp"
#include "examples/serve/model/straight_kv.hpp"
#include "examples/serve/model/transformer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace serve {
namespace {

constexpr auto max_tokens = std::int32_t{256};

const char* const text
  = "A text that is long enough for its start to leave a sliding window, so "
    "that both kinds of layers have something to do. It goes on for a while, "
    "as texts do that were written to fill a buffer, and then it ends.";

std::vector<token_id> tokens_of(const std::string& what) {
  auto res = std::vector<token_id>{};
  for (const auto byte : what)
    res.push_back(static_cast<unsigned char>(byte));
  return res;
}

// -- a model as one would write it down ---------------------------------------

using values = std::vector<double>;

values product(const values& in, const matrix& by) {
  auto res = values(by.outputs, 0.0);
  for (auto output = std::size_t{0}; output < by.outputs; ++output)
    for (auto input = std::size_t{0}; input < by.inputs; ++input)
      res[output] += in[input] * by.values[input * by.outputs + output];
  return res;
}

values normal(const values& in) {
  auto squares = 0.0;
  for (const auto value : in)
    squares += value * value;
  auto res = in;
  for (auto& value : res)
    value /= std::sqrt(squares / static_cast<double>(in.size()) + 1e-6);
  return res;
}

void turn(values& all, std::size_t position) {
  constexpr auto width = model_shape::head_width;
  for (auto head = std::size_t{0}; head < all.size(); head += width)
    for (auto pair = std::size_t{0}; pair < width / 2; ++pair) {
      const auto angle = static_cast<double>(position)
                       * std::pow(10'000.0, -2.0 * static_cast<double>(pair)
                                              / static_cast<double>(width));
      auto& x = all[head + pair];
      auto& y = all[head + pair + width / 2];
      const auto turned = x * std::cos(angle) - y * std::sin(angle);
      y = y * std::cos(angle) + x * std::sin(angle);
      x = turned;
    }
}

void add(values& to, const values& what) {
  for (auto at = std::size_t{0}; at < to.size(); ++at)
    to[at] += what[at];
}

/// Logits behind the last token: layer by layer for the whole text, in double
/// precision, nothing kept.
values naive_logits(const weights& learned, model_shape shape,
                    const std::vector<token_id>& text_tokens) {
  constexpr auto head_width = model_shape::head_width;
  auto streams = std::vector<values>{};
  for (const auto token : text_tokens) {
    const auto* row = learned.embedding.values.data()
                    + static_cast<std::size_t>(token) * model_shape::width;
    streams.emplace_back(row, row + model_shape::width);
  }
  for (auto layer = std::size_t{0}; layer < model_shape::layers; ++layer) {
    const auto& one = learned.layers[layer];
    auto queries = std::vector<values>{};
    auto keys = std::vector<values>{};
    auto contents = std::vector<values>{};
    for (auto at = std::size_t{0}; at < streams.size(); ++at) {
      const auto in = normal(streams[at]);
      queries.push_back(product(in, one.query));
      keys.push_back(product(in, one.key));
      contents.push_back(product(in, one.value));
      turn(queries.back(), at);
      turn(keys.back(), at);
    }
    const auto window = shape.window_of(shape.group_of(layer));
    for (auto at = std::size_t{0}; at < streams.size(); ++at) {
      auto attended = values(model_shape::heads * head_width, 0.0);
      for (auto head = std::size_t{0}; head < model_shape::heads; ++head) {
        const auto shared = head / 2 * head_width;
        auto total = 0.0;
        for (auto seen = std::size_t{0}; seen <= at; ++seen) {
          if (window != 0 && at - seen >= static_cast<std::size_t>(window))
            continue;
          auto score = 0.0;
          for (auto i = std::size_t{0}; i < head_width; ++i)
            score
              += queries[at][head * head_width + i] * keys[seen][shared + i];
          const auto share = std::exp(score / 4);
          total += share;
          for (auto i = std::size_t{0}; i < head_width; ++i)
            attended[head * head_width + i]
              += share * contents[seen][shared + i];
        }
        for (auto i = std::size_t{0}; i < head_width; ++i)
          attended[head * head_width + i] /= total;
      }
      add(streams[at], product(attended, one.attention_out));
      const auto in = normal(streams[at]);
      auto hidden = product(in, one.up);
      const auto gate = product(in, one.gate);
      for (auto i = std::size_t{0}; i < hidden.size(); ++i)
        hidden[i] *= gate[i] / (1 + std::exp(-gate[i]));
      add(streams[at], product(hidden, one.down));
    }
  }
  return product(normal(streams.back()), learned.unembedding);
}

// -- paged memory for one request ---------------------------------------------

struct pages {
  pages(model_variant variant, std::size_t tokens_per_block)
    : layout{model_shape{variant}, tokens_per_block},
      memory((blocks + 1) * layout.block(),
             std::numeric_limits<float>::quiet_NaN()) {
    // Neither ascending nor the same in both groups.
    const auto count = std::size_t{max_tokens} / tokens_per_block;
    for (auto group = std::size_t{0}; group < layout.shape.groups(); ++group) {
      auto& ids = table.emplace_back();
      for (auto index = std::size_t{0}; index < count; ++index)
        ids.push_back(static_cast<kvtide::block_id>(
          1 + (index * 37 + group * 101) % blocks));
    }
  }

  static constexpr std::size_t blocks = 211; // Prime: no id comes twice.
  kv_layout layout;
  std::vector<float> memory;
  block_table table;
};

class Model : public ::testing::TestWithParam<model_variant> {
protected:
  transformer uut{GetParam(), 5, max_tokens};
  std::vector<token_id> tokens = tokens_of(text);
};

TEST_P(Model, AgreesWithOneThatIsWrittenDownNaively) {
  auto kv = straight_kv{max_tokens};
  auto room = workspace{};
  auto position = std::int32_t{0};
  for (const auto token : tokens)
    uut.compute(token, position++, kv, room);
  (void)uut.next_token(room);
  const auto wanted = naive_logits(weights{5}, uut.shape(), tokens);
  for (auto at = std::size_t{0}; at < wanted.size(); ++at)
    EXPECT_NEAR(room.logits[at], wanted[at], 2e-3) << "token " << at;
}

TEST_P(Model, GivesTheSameBitsWithAndWithoutPages) {
  for (const auto size : {1U, 4U, 16U}) {
    if (max_tokens / size > pages::blocks)
      continue;
    auto memory = pages{GetParam(), size};
    auto paged = paged_kv{memory.layout, memory.memory.data(), memory.table};
    auto straight = straight_kv{max_tokens};
    auto one = workspace{};
    auto other = workspace{};
    auto position = std::int32_t{0};
    for (const auto token : tokens) {
      uut.compute(token, position, paged, one);
      uut.compute(token, position, straight, other);
      ASSERT_EQ(
        std::memcmp(one.stream.data(), other.stream.data(), sizeof(one.stream)),
        0)
        << "token " << position << " with blocks of " << size;
      ++position;
    }
  }
}

TEST_P(Model, GivesTheSameBitsWhateverIsComputedBetween) {
  auto alone = straight_kv{max_tokens};
  auto mixed = straight_kv{max_tokens};
  auto guest = straight_kv{max_tokens};
  auto room = workspace{};
  for (auto at = std::int32_t{0}; at < 100; ++at)
    uut.compute(tokens[static_cast<std::size_t>(at)], at, alone, room);
  const auto wanted = room.stream;
  for (auto at = std::int32_t{0}; at < 100; ++at) {
    uut.compute(255 - at, at, guest, room);
    uut.compute(tokens[static_cast<std::size_t>(at)], at, mixed, room);
  }
  EXPECT_EQ(std::memcmp(room.stream.data(), wanted.data(), sizeof(room.stream)),
            0);
}

TEST_P(Model, DependsOnEveryPartOfThePrompt) {
  const auto whole = straight_answer(uut, text, 16);
  auto changed = 0;
  for (auto at = std::size_t{0}; at < 200; at += 20) {
    auto other = std::string{text};
    other[at] ^= 1;
    changed += straight_answer(uut, other, 16) != whole ? 1 : 0;
  }
  EXPECT_GE(changed, 5) << "wrong bytes would often go unnoticed";
}

std::string name_of(const ::testing::TestParamInfo<model_variant>& variant) {
  return variant.param == model_variant::full_attention ? "full_attention"
                                                        : "sliding_window";
}

INSTANTIATE_TEST_SUITE_P(Variants, Model,
                         ::testing::Values(model_variant::full_attention,
                                           model_variant::sliding_window),
                         name_of);

TEST(SlidingModel, ReadsNothingOutsideItsWindow) {
  const auto uut = transformer{model_variant::sliding_window, 5, max_tokens};
  const auto tokens = tokens_of(text);
  auto memory = pages{model_variant::sliding_window, 4};
  auto paged = paged_kv{memory.layout, memory.memory.data(), memory.table};
  auto straight = straight_kv{max_tokens};
  auto one = workspace{};
  auto other = workspace{};
  for (auto at = std::int32_t{0}; at < 200; ++at) {
    const auto token = tokens[static_cast<std::size_t>(at)];
    // What the window has passed becomes poison, as do holes: block 0.
    const auto first = uut.shape().first_seen(1, at);
    for (auto index = 0; (index + 1) * 4 <= first; ++index)
      memory.table[1][static_cast<std::size_t>(index)] = kvtide::no_block;
    for (auto gone = first - first % 4; gone < first; ++gone)
      for (const auto layer : {1U, 3U})
        for (auto i = std::size_t{0}; i < model_shape::kv_width; ++i)
          paged.key(layer, gone)[i] = paged.value(layer, gone)[i]
            = std::numeric_limits<float>::quiet_NaN();
    uut.compute(token, at, paged, one);
    uut.compute(token, at, straight, other);
    ASSERT_EQ(
      std::memcmp(one.stream.data(), other.stream.data(), sizeof(one.stream)),
      0)
      << "token " << at;
  }
}

TEST(SlidingModel, ReadsAllOfItsWindow) {
  const auto uut = transformer{model_variant::sliding_window, 5, max_tokens};
  const auto tokens = tokens_of(text);
  auto kv = straight_kv{max_tokens};
  auto room = workspace{};
  for (auto at = std::int32_t{0}; at < 150; ++at)
    uut.compute(tokens[static_cast<std::size_t>(at)], at, kv, room);
  kv.key(1, uut.shape().first_seen(1, 150))[0]
    = std::numeric_limits<float>::quiet_NaN();
  uut.compute(tokens[150], 150, kv, room);
  EXPECT_TRUE(std::isnan(room.stream[0]));
}

TEST(ExactMath, ItsExponentialIsOne) {
  for (auto x = 0.0F; x > -80; x -= 0.037F)
    EXPECT_NEAR(exponential(x) / std::exp(static_cast<double>(x)), 1.0, 1e-5)
      << x;
  EXPECT_EQ(exponential(-1'000), 0.0F);
  EXPECT_EQ(exponential(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

TEST(CounterRandom, GivesTheSameNumbersEverywhere) {
  const auto uut = counter_random{1};
  EXPECT_EQ(uut.at(0), counter_random{1}.at(0));
  EXPECT_NE(uut.at(0), uut.at(1));
  EXPECT_NE(uut.at(0), counter_random{2}.at(0));
  auto sum = 0.0F;
  for (auto index = std::uint64_t{0}; index < 10'000; ++index) {
    const auto x = uut.uniform(index);
    ASSERT_GE(x, -1.0F);
    ASSERT_LT(x, 1.0F);
    sum += x;
  }
  EXPECT_NEAR(sum / 10'000, 0, 0.02);
}

} // namespace
} // namespace serve
