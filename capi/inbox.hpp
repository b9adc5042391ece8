// SPDX-License-Identifier: Apache-2.0

/// @file
/// How events get from a runtime, or from a rank, into batches.

#pragma once

#include "kvtide/runtime.hpp"
#include "kvtide/waiting.hpp"

#include "capi/batch.hpp"
#include "capi/border.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace kvtide::capi {

inline std::vector<engine_event>& events_in(kvtide_batch& batch,
                                            const engine_event*) {
  return batch.of_engine;
}

inline std::vector<rank_event>& events_in(kvtide_batch& batch,
                                          const rank_event*) {
  return batch.of_rank;
}

/// Why no answer comes any more; null if this event does not say so.
inline const error* loss_in(const engine_event& event) {
  const auto* lost = std::get_if<runtime_lost>(&event);
  return lost == nullptr ? nullptr : &lost->reason;
}

/// A rank that has died can be started again.
inline const error* loss_in(const rank_event&) {
  return nullptr;
}

/// Keeps what has arrived and nobody has taken: events that arrived while one
/// was awaited, and those that there was no memory to describe.
///
/// Threads: as the runtime or the rank; `wait` any.
template <class Side, class Event>
class inbox {
public:
  explicit inbox(Side& side) : side_(side) {
    // nop
  }

  /// Takes everything.
  /// @returns null if nothing has arrived
  kvtide_batch* poll() {
    const auto here = entry{busy_};
    take_in([this] { return side_.poll(); });
    if (aside_.empty())
      return nullptr;
    auto out = std::make_unique<kvtide_batch>();
    describe(aside_, *out);
    events_in(*out, aside_.data()).swap(aside_); // They stay where they are.
    has_aside_ = false;
    return out.release();
  }

  /// @returns false if there is nothing to poll when `timeout` has passed
  bool wait(std::chrono::milliseconds timeout) const {
    return has_aside_ || side_.wait(timeout);
  }

  /// Waits for one event and takes it alone; the others stay. Other threads
  /// may make calls meanwhile: if they turned its own looks away, each would
  /// leave an event that says so, which would end the next wait at once.
  /// Refuses with the reason if some event, also one that was taken long ago,
  /// has said that none comes any more.
  /// @param is_it tells of each event, once, whether it is the one
  /// @returns null if it has not come when `timeout` has passed
  template <class F>
  kvtide_batch* await(std::chrono::milliseconds timeout, F is_it) {
    const auto here = entry{busy_};
    auto seen = std::size_t{0};
    const auto take_all
      = [this] { take_in([this] { return wait_access::poll(side_); }); };
    const auto look = [&]() -> kvtide_batch* {
      for (; seen < aside_.size(); ++seen)
        if (is_it(std::as_const(aside_[seen])))
          return take(seen);
      check(lost_);
      return nullptr;
    };
    return look_until(side_, timeout, take_all, look);
  }

private:
  /// Two threads in here would take each other's events.
  class entry {
  public:
    explicit entry(std::atomic_flag& busy) : busy_(busy) {
      if (busy_.test_and_set(std::memory_order_acquire))
        throw refusal{{ec::out_of_order,
                       "another thread takes events here already; let one "
                       "thread at a time do that"}};
    }

    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;

    ~entry() {
      busy_.clear(std::memory_order_release);
    }

  private:
    std::atomic_flag& busy_;
  };

  template <class F>
  void take_in(F poll) {
    if (news_.empty())
      news_ = poll();
    has_aside_ = !aside_.empty() || !news_.empty(); // Whatever throws below.
    for (const auto& event : news_)
      if (const auto* reason = loss_in(event))
        lost_ = *reason;
    if (aside_.empty()) {
      aside_.swap(news_);
    } else if (!news_.empty()) {
      aside_.reserve(aside_.size() + news_.size());
      std::move(news_.begin(), news_.end(), std::back_inserter(aside_));
      news_.clear();
    }
  }

  kvtide_batch* take(std::size_t at) {
    auto out = std::make_unique<kvtide_batch>();
    auto& events = events_in(*out, aside_.data());
    events.push_back(std::move(aside_[at]));
    try {
      describe(events, *out);
    } catch (...) {
      aside_[at] = std::move(events.front());
      throw;
    }
    aside_.erase(aside_.begin() + static_cast<std::ptrdiff_t>(at));
    has_aside_ = !aside_.empty();
    return out.release();
  }

  Side& side_;
  /// In the order of their arrival, those of `news_` last.
  std::vector<Event> aside_;
  std::vector<Event> news_;
  /// Set once the other side is lost, for ever.
  error lost_;
  std::atomic<bool> has_aside_ = false;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

} // namespace kvtide::capi
