// SPDX-License-Identifier: Apache-2.0

#include "core/publication.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::core {

// -- what it hears ------------------------------------------------------------

void publication::start_over() {
  active_ = true;
  announces_ = true;
  pending_.clear();
  reading_ = reading::due;
  next_slot_ = 0;
}

void publication::pause() {
  active_ = false;
  announces_ = false;
  owes_ = false;
  unanswered_.clear();
  pending_.clear();
  reading_ = reading::done;
}

void publication::add(std::span<const key_change> changes) {
  if (!active_)
    return;
  for (const auto& one : changes)
    keep(one.digest, one.stored);
}

void publication::add_part(slot_id first, slot_id next, bool last,
                           std::span<const std::uint64_t> digests) {
  if (!active_)
    return;
  if (reading_ == reading::asked && first == next_slot_) {
    reading_ = last ? reading::done : reading::due;
    next_slot_ = next;
  }
  // Also if it was asked for by an earlier start: it is true.
  for (const auto digest : digests)
    keep(digest, true);
}

void publication::answered(std::uint64_t sequence, bool start_over) {
  while (!unanswered_.empty() && unanswered_.front() <= sequence)
    unanswered_.pop_front();
  if (start_over && active_ && !announces_ && sequence >= started_)
    this->start_over();
}

// -- what is to be done -------------------------------------------------------

std::optional<slot_id> publication::wanted_part() {
  if (!active_ || reading_ != reading::due
      || pending_.size() >= config_.batch_keys)
    return std::nullopt;
  reading_ = reading::asked;
  return next_slot_;
}

std::optional<publication::batch> publication::next() {
  if (!active_ || unanswered_.size() >= config_.window)
    return std::nullopt;
  const auto reads = reading_ != reading::done;
  if (!announces_) {
    // Little waits until it is more, or the way is free.
    if (!unanswered_.empty() && pending_.size() < config_.batch_keys)
      return std::nullopt;
    if (pending_.empty() && (reads || !owes_))
      return std::nullopt;
  }
  auto out = batch{};
  out.sequence = ++sequence_;
  out.starts_over = std::exchange(announces_, false);
  if (out.starts_over)
    started_ = sequence_;
  auto last = pending_.begin();
  for (auto left = std::min(config_.batch_keys, pending_.size()); left > 0;
       --left, ++last)
    (last->second ? out.stored : out.removed).push_back(last->first);
  for (const auto digest : out.stored)
    pending_.erase(digest);
  for (const auto digest : out.removed)
    pending_.erase(digest);
  out.more = reads || !pending_.empty();
  owes_ = out.more;
  unanswered_.push_back(out.sequence);
  return out;
}

// -- helpers ------------------------------------------------------------------

void publication::keep(std::uint64_t digest, bool stored) {
  if (pending_.size() >= config_.backlog && !pending_.contains(digest)) {
    ++overflows_;
    start_over();
    return;
  }
  pending_[digest] = stored;
}

} // namespace kvtide::core
