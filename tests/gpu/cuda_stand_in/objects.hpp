// SPDX-License-Identifier: Apache-2.0

/// @file
/// What the machine is made of. All of it is used with the machine locked.

#pragma once

#include "tests/gpu/cuda_stand_in/happens_before.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace kvtide::stand_in {

// -- memory -------------------------------------------------------------------

enum class memory_kind { device, allocated_host, registered_host };

/// Memory that the machine knows. Bytes lie at `host`; programs also know them
/// by `address`, which is the same unless devices see them elsewhere.
struct region {
  memory_kind kind;
  int device;
  std::byte* host;
  std::byte* address;
  std::size_t bytes;
  /// Operations that touch it and have not completed.
  std::size_t uses = 0;
};

using region_ptr = std::shared_ptr<region>;

/// Where a range of addresses lies.
struct place {
  /// None: pageable memory of the host, or nothing at all.
  region_ptr owner;
  std::byte* host = nullptr;
  /// Leaves the region it begins in, or reaches into one.
  bool crosses_border = false;
};

// -- operations ---------------------------------------------------------------

/// The end of an operation: what events and calls wait for.
struct completion {
  bool done = false;
  /// When, on the machine's own clock: the number of things completed so far.
  std::uint64_t tick = 0;
  happens_before edge;
};

using completion_ptr = std::shared_ptr<completion>;

/// What a stream works off: it begins when `waits` are done, runs its pieces
/// one after the other, with work of other streams between them, and is done.
struct operation {
  std::vector<completion_ptr> waits;
  std::vector<std::function<void()>> pieces;
  /// Bytes that it touches, by where they lie for the host.
  std::vector<memory_range> touches;
  std::vector<region_ptr> regions;
  bool host_function = false;
  /// What it is called with.
  void* host_data = nullptr;
  /// What becomes of the context when it runs.
  cudaError_t breaks_context = cudaSuccess;

  bool begun = false;
  std::size_t next_piece = 0;
  happens_before submitted;
  completion_ptr done = std::make_shared<completion>();
};

// -- streams, events, captures ------------------------------------------------

/// Names an object for ever: addresses of freed objects come back, these do
/// not.
using object_id = std::uintptr_t;

struct capture;
using capture_ptr = std::shared_ptr<capture>;

/// Which streams' captured work lies before a point, and how much of it.
using captured_work = std::map<object_id, std::uint64_t>;

struct stream {
  object_id id;
  int device;
  bool legacy;
  bool blocking;
  std::deque<std::shared_ptr<operation>> queue;
  /// The end of the operation that was submitted last.
  completion_ptr tail;

  /// Does not end before the machine; gone from the program's view.
  bool destroyed = false;
  /// Runs a piece.
  bool busy = false;
  /// Was told to run one.
  bool chosen = false;
  std::condition_variable wake;
  std::thread worker;

  capture_ptr capturing;
  /// What a graph node that is captured now would wait for.
  captured_work before;
};

using stream_ptr = std::shared_ptr<stream>;

struct event {
  int device;
  bool timed;
  /// None: never recorded.
  completion_ptr recorded;
  /// Last recorded in this capture, which may have ended.
  capture_ptr captured;
  captured_work before;
};

using event_ptr = std::shared_ptr<event>;

struct capture {
  object_id origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool active = true;
  bool invalidated = false;
  std::map<object_id, std::uint64_t> lengths;
};

// -- threads of the program ---------------------------------------------------

/// What CUDA keeps per thread.
struct caller {
  std::uint64_t generation = 0;
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  /// That it is in.
  const char* function = "";
};

} // namespace kvtide::stand_in
