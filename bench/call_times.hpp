// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "bench/percentiles.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace kvtide::bench {

/// How often the caller's thread has left its core so far.
struct thread_switches {
  /// It waited for something: a lock, say.
  long waited = 0;
  /// The system gave the core to somebody else.
  long preempted = 0;

  static thread_switches now() {
    auto used = rusage{};
    ::getrusage(RUSAGE_THREAD, &used);
    return {used.ru_nvcsw, used.ru_nivcsw};
  }
};

/// What one kind of call took.
struct call_times {
  std::string name;
  /// Microseconds, in call order.
  std::vector<double> micros;
  /// The same of calls in which the thread kept its core.
  std::vector<double> undisturbed;
  /// Calls in which the thread waited, and in which it was preempted.
  std::size_t waited = 0;
  std::size_t preempted = 0;
};

/// Times calls by name.
///
/// Thread-safety: none; the thread is the one that is watched.
class call_clock {
public:
  /// Calls `what`; about 0.05 us of the clock are counted with it.
  /// @returns what it returns
  template <class Function>
  auto time(const char* name, Function what) {
    const auto span = scope{*this, name};
    return what();
  }

  /// From now on calls count, until `end`.
  void begin() noexcept {
    counting_ = true;
  }

  void end() noexcept {
    counting_ = false;
  }

  /// Empty if there was no such call.
  [[nodiscard]] call_times& times_of(const char* name) {
    for (auto& one : calls_)
      if (one.name == name)
        return one;
    return calls_.emplace_back(call_times{name, {}, {}, 0, 0});
  }

private:
  using steady = std::chrono::steady_clock;

  struct scope {
    ~scope() {
      const auto end = steady::now();
      const auto left = thread_switches::now();
      if (clock.counting_)
        note(clock.times_of(name),
             std::chrono::duration<double, std::micro>{end - start}.count(),
             {left.waited - before.waited, left.preempted - before.preempted});
    }

    call_clock& clock;
    const char* name;
    thread_switches before = thread_switches::now();
    steady::time_point start = steady::now();
  };

  static void note(call_times& of, double micros, thread_switches left) {
    of.micros.push_back(micros);
    of.waited += left.waited > 0;
    of.preempted += left.preempted > 0;
    if (left.waited == 0 && left.preempted == 0)
      of.undisturbed.push_back(micros);
  }

  bool counting_ = false;
  std::vector<call_times> calls_;
};

} // namespace kvtide::bench
