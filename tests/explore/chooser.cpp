// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/chooser.hpp"

#include <algorithm>

namespace kvtide::explore {

std::size_t scripted_chooser::pick(const std::vector<choice>& open) {
  const auto at = at_++;
  if (at >= picks_.size())
    return 0;
  const auto fits = picks_[at] < open.size();
  fit_ = fit_ && fits;
  return fits ? picks_[at] : 0;
}

random_chooser::random_chooser(std::uint64_t seed) : random_(seed) {
  const auto one_of = [this](std::initializer_list<std::uint32_t> list) {
    return list.begin()[random_() % list.size()];
  };
  // Zero: only if nothing else is open.
  constexpr auto drawn = static_cast<std::size_t>(choice_kind::device_work);
  for (std::size_t i = 0; i < drawn; ++i)
    kinds_[i] = one_of({0, 2, 8, 8, 32});
  for (auto& x : subjects_)
    x = one_of({0, 1, 8, 8, 8, 32});
  for (auto& x : ranks_)
    x = one_of({1, 8, 8, 32});
  // Trouble is rare, or there would be nothing else.
  for (auto kind : {choice_kind::idle_time, choice_kind::deadline,
                    choice_kind::copy_failure, choice_kind::rank_death})
    kinds_[static_cast<std::size_t>(kind)] = one_of({0, 1, 1, 2});
  kinds_[static_cast<std::size_t>(choice_kind::rank_return)]
    = one_of({2, 8, 32});
  if (random_() % 4 == 0) // Some like pauses.
    kinds_[static_cast<std::size_t>(choice_kind::idle_time)] = 32;
  whims_ = one_of({4, 8, 16, 1'000'000});
  // Not drawn, so that seeds mean the same without a CUDA device, and where all
  // ranks are here.
  constexpr std::uint32_t work[] = {2, 8, 8, 32, 32};
  kinds_[static_cast<std::size_t>(choice_kind::device_work)] = work[seed % 5];
  constexpr std::uint32_t cuts[] = {1, 1, 2};
  kinds_[static_cast<std::size_t>(choice_kind::link_cut)] = cuts[seed % 3];
  constexpr std::uint32_t notices[] = {1, 2, 8, 32};
  kinds_[static_cast<std::size_t>(choice_kind::link_noticed)]
    = notices[seed % 4];
  kinds_[static_cast<std::size_t>(choice_kind::link_return)]
    = notices[seed / 4 % 4];
}

std::uint32_t random_chooser::weight(const choice& what) const {
  return kinds_[static_cast<std::size_t>(what.kind)]
       * subjects_[what.subject % subjects_.size()]
       * ranks_[what.rank % ranks_.size()];
}

std::size_t random_chooser::pick(const std::vector<choice>& open) {
  if (open.front().kind == choice_kind::whim)
    return random_() % whims_ == 0 ? random_() % open.size() : 0;
  auto sum = std::uint64_t{0};
  sums_.clear();
  for (const auto& x : open)
    sums_.push_back(sum += weight(x));
  if (sum == 0)
    return random_() % open.size();
  const auto found
    = std::upper_bound(sums_.begin(), sums_.end(), random_() % sum);
  return static_cast<std::size_t>(found - sums_.begin());
}

} // namespace kvtide::explore
