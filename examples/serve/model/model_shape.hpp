// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>

namespace serve {

/// Which transformer is served.
enum class model_variant : std::uint8_t {
  /// All layers attend to everything: one KV group.
  full_attention,
  /// Every other layer attends to a sliding window: two KV groups.
  sliding_window,
};

/// A byte.
using token_id = std::int32_t;

/// The sizes of the model, small enough for a token to take a tenth of a
/// millisecond on one core.
struct model_shape {
  static constexpr std::size_t layers = 4;
  static constexpr std::size_t width = 64;
  /// Query heads; each `heads / kv_heads` of them share a head of keys and
  /// values.
  static constexpr std::size_t heads = 4;
  static constexpr std::size_t kv_heads = 2;
  static constexpr std::size_t head_width = 16;
  static constexpr std::size_t kv_width = kv_heads * head_width;
  /// Of the MLP.
  static constexpr std::size_t hidden = 128;
  static constexpr std::size_t vocabulary = 256;
  /// Tokens that a sliding layer attends to, the token itself included.
  static constexpr std::int32_t window = 64;

  model_variant variant = model_variant::full_attention;

  /// Layers of one group share a block table.
  [[nodiscard]] constexpr std::size_t groups() const noexcept {
    return variant == model_variant::full_attention ? 1 : 2;
  }

  [[nodiscard]] constexpr std::size_t
  group_of(std::size_t layer) const noexcept {
    return layer % groups();
  }

  /// Index of a layer among those of its group.
  [[nodiscard]] constexpr std::size_t
  place_of(std::size_t layer) const noexcept {
    return layer / groups();
  }

  [[nodiscard]] constexpr std::size_t layers_per_group() const noexcept {
    return layers / groups();
  }

  /// Tokens that a group attends to; zero means all.
  [[nodiscard]] constexpr std::int32_t
  window_of(std::size_t group) const noexcept {
    return group == 0 ? 0 : window;
  }

  /// The first position that a token at `position` attends to in a group.
  [[nodiscard]] constexpr std::int32_t
  first_seen(std::size_t group, std::int32_t position) const noexcept {
    const auto reach = window_of(group);
    return reach == 0 || position < reach ? 0 : position - reach + 1;
  }
};

} // namespace serve
