// SPDX-License-Identifier: Apache-2.0

/// @file
/// The promise behind offloading: a prompt has one answer, wherever its KV
/// comes from.

#pragma once

#include "examples/serve/engine/completion.hpp"
#include "examples/serve/engine/engine_options.hpp"
#include "examples/serve/engine/engine_stats.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace serve::test {

/// Under which an engine answers.
enum class situation : std::uint8_t {
  /// Without a cache below.
  offload_off,
  offload_on,
  /// Each prompt comes twice, and the device forgets it between.
  reload,
  /// Blocks run out in the middle of answers.
  preemption,
  /// As `reload`, but copies fail or come too late.
  failed_load,
  /// As `reload`, but loads bring wrong bytes: here differences are wanted, or
  /// the comparison would prove nothing.
  corrupted_load,
};

inline constexpr auto all_situations = std::array{
  situation::offload_off, situation::offload_on,  situation::reload,
  situation::preemption,  situation::failed_load, situation::corrupted_load};

[[nodiscard]] std::string_view to_word(situation what) noexcept;

/// What came of it.
struct comparison {
  situation what = situation::offload_off;
  model_variant variant = model_variant::full_attention;
  /// Answers that were compared, and how many of them were wrong or missing.
  std::size_t answers = 0;
  std::size_t differences = 0;
  /// Loads whose bytes were changed on purpose.
  std::uint64_t corrupted = 0;
  engine_stats last;
  /// What is wrong, a sentence each: differences where there must be none, or
  /// none where they are wanted; a situation that did not come about; something
  /// left over.
  std::vector<std::string> faults;
};

/// Requests and the answers that a straight computation gives.
struct known_answers {
  model_variant variant = model_variant::full_attention;
  /// Of the weights.
  std::uint64_t seed = 1;
  std::vector<completion_request> requests;
  std::vector<std::string> texts;
};

/// Computes the answers without an engine.
[[nodiscard]] known_answers
answer_straight(model_variant variant, std::uint64_t seed, std::size_t prompts);

/// Lets an engine answer, and compares.
[[nodiscard]] comparison compare(const known_answers& known, situation what);

/// Lines for a person, one per comparison.
[[nodiscard]] std::string make_table(const std::vector<comparison>& all);

} // namespace serve::test
