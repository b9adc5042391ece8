// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace kvtide::bench {

/// Memory that an engine shares with the processes of its ranks: when each rank
/// may compute which step. A process that is forked has the same one. Who waits
/// here for a minute ends his process.
class rank_board {
public:
  static constexpr std::size_t most_ranks = 64;

  rank_board()
    : shared_(::mmap(nullptr, sizeof(content), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
      news_(::eventfd(0, EFD_NONBLOCK)) {
    if (shared_ == MAP_FAILED || news_ < 0)
      std::abort();
    new (shared_) content;
  }

  rank_board(const rank_board&) = delete;
  rank_board& operator=(const rank_board&) = delete;

  ~rank_board() {
    ::close(news_);
    ::munmap(shared_, sizeof(content));
  }

  /// Nanoseconds of a clock that all processes share.
  static std::int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
  }

  // -- before the steps -------------------------------------------------------

  void publish(const std::string& address) {
    std::strncpy(in().address, address.c_str(), sizeof(in().address) - 1);
    in().published = true;
  }

  std::string await_address() {
    rest_until([&] { return in().published.load(); });
    return in().address;
  }

  void open(rank_id rank) {
    in().ranks[rank].open = true;
  }

  void await_open(std::uint32_t ranks) {
    rest_until([&] {
      return std::all_of(in().ranks, in().ranks + ranks,
                         [](const seat& x) { return x.open.load(); });
    });
  }

  /// From here on ranks may begin steps.
  void start() {
    in().started = true;
  }

  void await_start() {
    rest_until([&] { return in().started.load(); });
  }

  // -- behind the steps -------------------------------------------------------

  void close(rank_id rank) {
    in().ranks[rank].open = false;
  }

  void await_closed(std::uint32_t ranks) {
    rest_until([&] {
      return std::none_of(in().ranks, in().ranks + ranks,
                          [](const seat& x) { return x.open.load(); });
    });
  }

  // -- in each step -----------------------------------------------------------

  void note(rank_id rank, step_id step) {
    auto& its = in().ranks[rank];
    its.moment.store(now(), std::memory_order_relaxed);
    its.step.store(step, std::memory_order_release);
    const auto one = std::uint64_t{1};
    if (::write(news_, &one, sizeof(one)) < 0)
      return; // Full: whoever waits is awake.
  }

  /// @returns when the last of ranks `first` to `end` was ready for `step`;
  /// zero
  ///          if one is not yet
  std::int64_t slowest(rank_id first, rank_id end, step_id step) {
    auto out = std::int64_t{0};
    for (auto r = first; r < end; ++r) {
      auto& its = in().ranks[r];
      if (its.step.load(std::memory_order_acquire) < step)
        return 0;
      out = std::max(out, its.moment.load(std::memory_order_relaxed));
    }
    return out;
  }

  /// Sleeps until a rank has written, or something can be read from `other`.
  void wait(int other, bool listen_to_other) {
    pollfd fds[] = {{news_, POLLIN, 0}, {other, POLLIN, 0}};
    ::poll(fds, listen_to_other ? 2 : 1, 1'000);
    auto drained = std::uint64_t{0};
    if (::read(news_, &drained, sizeof(drained)) < 0)
      return; // Nothing was there: it was the other.
  }

private:
  struct seat {
    std::atomic<bool> open{false};
    std::atomic<std::uint64_t> step{0};
    std::atomic<std::int64_t> moment{0};
  };

  struct content {
    std::atomic<bool> published{false};
    std::atomic<bool> started{false};
    char address[256]{};
    seat ranks[most_ranks];
  };

  content& in() {
    return *static_cast<content*>(shared_);
  }

  template <class Condition>
  static void rest_until(Condition over) {
    for (auto naps = 0; !over(); ++naps) {
      if (naps == 60'000) {
        std::fputs("bench-distance: another process does not answer\n", stderr);
        std::_Exit(1);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

  void* shared_;
  int news_;
};

} // namespace kvtide::bench
