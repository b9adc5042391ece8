// SPDX-License-Identifier: Apache-2.0

/// @file
/// The machine behind the CUDA functions: devices with contexts, what the
/// program made of them, and the chance that decides what runs next. All of it
/// is used with the machine locked unless it says otherwise.

#pragma once

#include "tests/gpu/cuda_stand_in/objects.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::stand_in {

/// What a call needs before it can begin.
enum class needs {
  nothing,
  /// A context of the current device that is not lost.
  context,
  /// What its handle belongs to, which the call itself looks at.
  handle,
};

// -- machine ------------------------------------------------------------------

class machine {
public:
  explicit machine(settings wanted, std::uint64_t generation);

  machine(const machine&) = delete;

  machine& operator=(const machine&) = delete;

  /// Drops what has not run, and ends all threads. Not locked.
  ~machine();

  /// Lets what is running end, and drops the rest. Not locked.
  void stop();

  /// The one that `start` made. Not locked.
  static machine& current();

  /// Replaces it. Not locked.
  static void replace(const settings& wanted);

  hidden_mutex mutex;
  const settings wanted;
  const std::uint64_t generation;

  // -- calls (machine.cpp) ----------------------------------------------------

  /// This thread's state.
  caller& me();

  /// @returns why a call cannot begin, or success.
  cudaError_t admit(const char* function, needs what);

  /// Notes a wrong call. @returns code
  cudaError_t refuse(cudaError_t code, std::string sentence);

  void warn(std::string sentence);

  std::vector<std::string> refusals;
  std::vector<std::string> warnings;
  std::map<std::string, std::uint64_t, std::less<>> calls;

  // -- devices ----------------------------------------------------------------

  /// Per device: why its context is gone, or success.
  std::vector<cudaError_t> lost;

  void lose(int device, cudaError_t code);

  [[nodiscard]] cudaError_t context_of(int device) const;

  /// Of the current device, if there is one.
  [[nodiscard]] cudaError_t sticky_error();

  // -- memory (memory.cpp) ----------------------------------------------------

  [[nodiscard]] place find(const void* address, std::size_t bytes) const;

  /// Knows a new region; gives device memory an address.
  void add(region_ptr added);

  void remove(const region_ptr& removed);

  /// The regions by first host address, and by first device address.
  std::map<std::uintptr_t, region_ptr> by_host;
  std::map<std::uintptr_t, region_ptr> by_address;
  std::uint64_t registered_bytes = 0;
  std::vector<std::uint64_t> allocated_bytes;
  /// Address ranges that no host can use, kept so that none comes back.
  std::vector<std::pair<void*, std::size_t>> reserved;

  // -- work (schedule.cpp) ----------------------------------------------------

  /// What all calls that enqueue end with: work enters a stream, or its
  /// capture.
  cudaError_t enter(const stream_ptr& to, std::shared_ptr<operation> entering);

  /// Puts an operation at the end of a stream.
  void submit(stream& to, std::shared_ptr<operation> submitted);

  [[nodiscard]] bool can_run(const stream& checked) const;

  [[nodiscard]] std::vector<stream_ptr> all_that_can_run() const;

  /// Runs one piece of a stream's next operation. Unlocks for it.
  void run_piece(const stream_ptr& running);

  /// Tells streams to run, as many as may work at a time.
  void choose();

  /// Waits until all are done, and sees what was done before them.
  /// @returns why one of them will not be: its context is lost.
  cudaError_t wait_for(const std::vector<completion_ptr>& ends, int device);

  /// Waits until nothing uses a region. @returns as `wait_for`
  cudaError_t wait_until_unused(const region& used, int device);

  /// Chance. @returns below `limit`
  std::size_t draw(std::size_t limit);

  std::vector<stream_ptr> streams;
  std::size_t working = 0;
  std::uint64_t ticks = 0;
  bool stopping = false;
  std::condition_variable changed;
  std::mt19937_64 random;

  // -- handles (streams.cpp, events.cpp) --------------------------------------

  object_id new_handle();

  std::map<object_id, stream_ptr> live_streams;
  std::map<object_id, event_ptr> live_events;
  std::set<object_id> live_graphs;
  std::vector<stream_ptr> legacy_streams;

  /// Looks a stream up. @returns an error for a wrong handle or a lost context.
  cudaError_t find_stream(cudaStream_t searched, stream_ptr& found);

  cudaError_t find_event(cudaEvent_t searched, event_ptr& found);

  // -- captures (capture.cpp) -------------------------------------------------

  std::vector<capture_ptr> captures;

  /// For calls that a capture would not see. @returns why it is prohibited.
  cudaError_t check_unsafe();

  /// For what a stream is asked to do. @returns why it cannot.
  cudaError_t check_usable(const stream& asked);

  /// For what waits for a stream or asks how far it is, which no capture has an
  /// answer to. @returns why it is prohibited.
  cudaError_t check_queryable(const stream& asked);

  /// Adds work to the capture of a stream instead of running it.
  void capture_work(stream& entered);

  // -- faults -----------------------------------------------------------------

  struct call_fault {
    std::string function;
    std::uint32_t countdown;
    cudaError_t code;
    bool sticky;
  };

  struct run_fault {
    memory_range range;
    cudaError_t code;
  };

  std::vector<call_fault> call_faults;
  std::vector<run_fault> run_faults;
  std::vector<memory_range> hanging;

private:
  void work(const stream_ptr& served);

  void finish(stream& finished_in, operation& finished);
};

/// True while a host function runs on this thread.
bool& in_host_function();

/// The frame of every CUDA function: locks, asks whether the call may begin,
/// and keeps what it returns as this thread's last error.
template <class Body>
cudaError_t call(const char* function, needs what, Body body) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  auto code = m.admit(function, what);
  if (code == cudaSuccess)
    code = body(m);
  if (code != cudaSuccess)
    m.me().last_error = code;
  return code;
}

inline bool overlap(const memory_range& x, const memory_range& y) {
  const auto first = reinterpret_cast<std::uintptr_t>(x.address);
  const auto second = reinterpret_cast<std::uintptr_t>(y.address);
  return first < second + y.bytes && second < first + x.bytes;
}

} // namespace kvtide::stand_in
