// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/model/transformer.hpp"

#include "examples/serve/model/exact_math.hpp"
#include "examples/serve/model/paged_kv.hpp"
#include "examples/serve/model/straight_kv.hpp"

#include <algorithm>
#include <limits>

namespace serve {

transformer::transformer(model_variant variant, std::uint64_t seed,
                         std::int32_t max_tokens)
  : shape_{variant}, seed_(seed), weights_(seed), rotary_(max_tokens) {
  // nop
}

std::string transformer::fingerprint() const {
  return std::string{"serve-"}
       + (shape_.variant == model_variant::full_attention ? "full-"
                                                          : "sliding-")
       + std::to_string(seed_);
}

template <class Kv>
void transformer::compute(token_id token, std::int32_t position, Kv& kv,
                          workspace& room) const {
  constexpr auto width = model_shape::width;
  const auto* row = weights_.embedding.values.data()
                  + static_cast<std::size_t>(token) * width;
  std::copy(row, row + width, room.stream.begin());
  const auto add_change = [&room] {
    for (auto at = std::size_t{0}; at < width; ++at)
      room.stream[at] += room.change[at];
  };
  for (auto layer = std::size_t{0}; layer < model_shape::layers; ++layer) {
    const auto& learned = weights_.layers[layer];
    normalize(room.stream.data(), room.normal.data());
    attend(layer, position, kv, room);
    multiply(room.attended.data(), learned.attention_out, room.change.data());
    add_change();
    normalize(room.stream.data(), room.normal.data());
    multiply(room.normal.data(), learned.gate, room.gate.data());
    multiply(room.normal.data(), learned.up, room.up.data());
    for (auto at = std::size_t{0}; at < model_shape::hidden; ++at)
      room.up[at] *= swish(room.gate[at]);
    multiply(room.up.data(), learned.down, room.change.data());
    add_change();
  }
}

template <class Kv>
void transformer::attend(std::size_t layer, std::int32_t position, Kv& kv,
                         workspace& room) const {
  constexpr auto head_width = model_shape::head_width;
  constexpr auto sharers = model_shape::heads / model_shape::kv_heads;
  const auto& learned = weights_.layers[layer];
  auto* key = kv.key(layer, position);
  multiply(room.normal.data(), learned.query, room.query.data());
  multiply(room.normal.data(), learned.key, key);
  multiply(room.normal.data(), learned.value, kv.value(layer, position));
  for (auto head = std::size_t{0}; head < model_shape::heads; ++head)
    rotary_.turn(room.query.data() + head * head_width, position);
  for (auto head = std::size_t{0}; head < model_shape::kv_heads; ++head)
    rotary_.turn(key + head * head_width, position);
  const auto first = shape_.first_seen(shape_.group_of(layer), position);
  room.scores.resize(static_cast<std::size_t>(position - first + 1));
  for (auto head = std::size_t{0}; head < model_shape::heads; ++head) {
    const auto* query = room.query.data() + head * head_width;
    const auto offset = head / sharers * head_width;
    constexpr auto scale = 0.25F; // One by the root of `head_width`.
    auto highest = -std::numeric_limits<float>::infinity();
    auto* score = room.scores.data();
    kv.each_run(layer, first, position,
                [&](const float* keys, const float*, std::int32_t count) {
                  for (; count > 0; --count, keys += model_shape::kv_width) {
                    *score = scale * dot(query, keys + offset);
                    highest = std::max(highest, *score++);
                  }
                });
    auto sums = std::array<float, head_width>{};
    auto total = 0.0F;
    score = room.scores.data();
    kv.each_run(layer, first, position,
                [&](const float*, const float* values, std::int32_t count) {
                  for (; count > 0; --count, values += model_shape::kv_width) {
                    const auto share = exponential(*score++ - highest);
                    total += share;
                    for (auto at = std::size_t{0}; at < head_width; ++at)
                      sums[at] += share * values[offset + at];
                  }
                });
    for (auto at = std::size_t{0}; at < head_width; ++at)
      room.attended[head * head_width + at] = sums[at] / total;
  }
}

token_id transformer::next_token(workspace& room) const {
  normalize(room.stream.data(), room.normal.data());
  multiply(room.normal.data(), weights_.unembedding, room.logits.data());
  const auto best = std::max_element(room.logits.begin(), room.logits.end());
  return static_cast<token_id>(best - room.logits.begin());
}

// Both in one source, so that they are compiled alike.
template void transformer::compute(token_id, std::int32_t, paged_kv&,
                                   workspace&) const;
template void transformer::compute(token_id, std::int32_t, straight_kv&,
                                   workspace&) const;

} // namespace serve
