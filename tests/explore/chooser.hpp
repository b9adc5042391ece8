// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/explore/choice.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace kvtide::explore {

/// Decides what happens next.
class chooser {
public:
  virtual ~chooser() = default;

  /// @param open what may happen: at least two choices
  /// @returns an index into `open`
  virtual std::size_t pick(const std::vector<choice>& open) = 0;
};

/// Follows a list of picks, then always takes the first.
class scripted_chooser : public chooser {
public:
  explicit scripted_chooser(schedule picks) : picks_(std::move(picks)) {
    // nop
  }

  std::size_t pick(const std::vector<choice>& open) override;

  /// Each pick of the list could be made.
  [[nodiscard]] bool all_applied() const noexcept {
    return fit_ && at_ >= picks_.size();
  }

private:
  schedule picks_;
  std::size_t at_ = 0;
  bool fit_ = true;
};

/// Chooses by a seed. Each seed has tastes of its own: it lets copies lag, or
/// one actor, or the engine, so that rare orders are not rare in all seeds.
class random_chooser : public chooser {
public:
  explicit random_chooser(std::uint64_t seed);

  std::size_t pick(const std::vector<choice>& open) override;

private:
  [[nodiscard]] std::uint32_t weight(const choice& what) const;

  std::mt19937_64 random_;
  std::array<std::uint32_t, choice_kinds> kinds_{};
  std::array<std::uint32_t, 16> subjects_{};
  std::array<std::uint32_t, 4> ranks_{};
  /// A whim strikes once in so many decisions.
  std::uint32_t whims_ = 1;
  std::vector<std::uint64_t> sums_;
};

} // namespace kvtide::explore
