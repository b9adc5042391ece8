// SPDX-License-Identifier: Apache-2.0

/// @file
/// The CUDA engine on a stand-in that a test drives by hand.

#pragma once

#include "gpu/cuda/compute_events.hpp"
#include "gpu/cuda/cuda_copy_engine.hpp"
#include "gpu/cuda/device_buffer.hpp"
#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/handles.hpp"
#include "gpu/cuda/pinned_buffer.hpp"
#include "gpu/cuda/pool_registration.hpp"
#include "gpu/cuda/stream.hpp"
#include "gpu/host_memory.hpp"
#include "tests/gpu/compute_gate.hpp"
#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::gpu {

/// Nothing works but when a test says so.
inline stand_in::settings manual_machine() {
  auto wanted = stand_in::settings{};
  wanted.threads = 0;
  // Whoever takes one address for the other is found out.
  wanted.registered_memory_has_other_device_address = true;
  return wanted;
}

template <class T>
T value_of(result<T> made) {
  if (!made)
    throw std::runtime_error{made.failure().text};
  return std::move(made).value();
}

/// Compute that lasts until a test ends it, in a stream of its own.
class held_compute {
public:
  held_compute(compute_events& events, int device) : device_(device) {
    const device_scope scope{device};
    stream_ = value_of(make_stream());
    flag_ = value_of(make_pinned_buffer(sizeof(std::uint32_t)));
    *flag() = 0;
    if (launch_gate(flag(), stream_.get()) != cudaSuccess)
      throw std::runtime_error{"the gate did not launch"};
    event_.handle = value_of(events.record(to_number(stream_.get())));
  }

  held_compute(held_compute&&) = default;

  ~held_compute() {
    if (stream_.get() == nullptr)
      return;
    const device_scope scope{device_};
    end();
    ignore(::cudaStreamSynchronize(stream_.get()));
    flag_ = {};
    stream_ = {};
  }

  [[nodiscard]] compute_event event() const {
    return event_;
  }

  void end() {
    open_gate(flag(), flag());
  }

private:
  [[nodiscard]] std::uint32_t* flag() const {
    return static_cast<std::uint32_t*>(flag_.get());
  }

  int device_;
  cuda_stream stream_;
  pinned_buffer flag_;
  compute_event event_;
};

/// An engine with memory on both sides. No two places of one side touch.
class cuda_test : public ::testing::Test {
protected:
  static constexpr std::size_t unit = 64;
  static constexpr std::size_t page = 4'096;

  cuda_test() {
    stand_in::start(manual_machine());
  }

  void TearDown() override {
    give_up_everything();
    EXPECT_EQ(stand_in::refusals().size(), expected_refusals)
      << ::testing::PrintToString(stand_in::refusals());
    EXPECT_EQ(stand_in::leaks().empty(), !expects_leaks)
      << ::testing::PrintToString(stand_in::leaks());
    for (const auto& warning : stand_in::warnings())
      EXPECT_EQ(warning.find("never recorded"), std::string::npos)
        << "G2: " << warning;
    if (!expects_loss)
      expect_no_error();
    stand_in::start();
  }

  void give_up_everything() {
    stand_in::release_hanging();
    if (engine)
      settle();
    engine.reset();
    events.reset();
    {
      const device_scope scope{device};
      blocks_ = {};
    }
    pool.reset();
  }

  /// Another machine and another engine in the same test.
  void start_anew() {
    give_up_everything();
    stand_in::start(manual_machine());
    done.clear();
    fences.clear();
  }

  /// MEM-01: what went wrong is not found by whoever asks next.
  static void expect_no_error() {
    EXPECT_STREQ(::cudaGetErrorName(::cudaPeekAtLastError()), "cudaSuccess");
  }

  /// @param pieces bytes of each registration of the pool, whole pages; none:
  ///               the pool is plain memory
  void make_memory(std::vector<std::size_t> pieces = {256 * page}) {
    const device_scope scope{device};
    blocks_ = value_of(make_device_buffer(256 * page));
    slots_.emplace(value_of(host_memory::map(256 * page)));
    std::memset(slots_->data(), 0, 256 * page);
    std::memset(view(block(0)), 0, 256 * page);
    if (pieces.empty())
      return;
    pool = value_of(pool_registration::make(device));
    auto* first = slots_->data();
    for (const auto bytes : pieces) {
      ASSERT_EQ(pool->add(first, bytes).text, "");
      first += bytes;
    }
  }

  /// One stream per direction, copies one by one, and room for everything,
  /// unless `how` says otherwise.
  cuda_engine_config config(const std::function<void(cuda_engine_config&)>& how
                            = {}) {
    if (blocks_.get() == nullptr)
      make_memory();
    events = value_of(compute_events::make(device));
    auto made = cuda_engine_config{};
    made.wake = [wakes = wakes_] { ++*wakes; };
    made.device = device;
    made.events = events;
    made.pool = pool;
    made.path = copy_path::plain;
    made.slice_bytes = 1u << 20;
    made.bytes_in_flight = 1u << 30;
    made.kernel_below = 0;
    if (how)
      how(made);
    return made;
  }

  void make(const std::function<void(cuda_engine_config&)>& how = {}) {
    auto made = make_cuda_copy_engine(config(how));
    ASSERT_TRUE(made.ok()) << made.failure().text;
    engine = std::move(made).value();
  }

  std::byte* block(std::size_t i) {
    return static_cast<std::byte*>(blocks_.get()) + 2 * i * unit;
  }

  std::byte* slot(std::size_t i) {
    return slots_->data() + 2 * i * unit;
  }

  /// Where the host finds the bytes of the device.
  static std::byte* view(std::byte* at) {
    auto* there = stand_in::device_view(at, 1);
    return there != nullptr ? static_cast<std::byte*>(there) : at;
  }

  void fill(std::byte* at, int value, std::size_t bytes = unit) {
    std::memset(view(at), value, bytes);
  }

  static bool holds(std::byte* at, int value, std::size_t bytes = unit) {
    const auto* first = view(at);
    return std::all_of(first, first + bytes, [value](std::byte x) {
      return x == static_cast<std::byte>(value);
    });
  }

  fragment part(job_kind kind, std::byte* on_device, std::byte* on_host,
                std::size_t bytes, std::uint32_t row = 0,
                std::uint32_t tensor = 0) {
    return kind == job_kind::store
           ? fragment{on_host, on_device, bytes, row, tensor}
           : fragment{on_device, on_host, bytes, row, tensor};
  }

  /// Row i goes between block and slot `first + i`.
  copy_job job(job_id id, job_kind kind, std::size_t first,
               std::size_t rows = 1) {
    auto made = copy_job{};
    made.id = id;
    made.kind = kind;
    for (auto i = first; i < first + rows; ++i) {
      made.slots.push_back(static_cast<slot_id>(i));
      made.fragments.push_back(part(kind, block(i), slot(i), unit,
                                    static_cast<std::uint32_t>(i - first)));
    }
    return made;
  }

  copy_job store(job_id id, std::size_t first, std::size_t rows = 1) {
    return job(id, job_kind::store, first, rows);
  }

  copy_job load(job_id id, std::size_t first, std::size_t rows = 1) {
    return job(id, job_kind::load, first, rows);
  }

  static copy_job after(copy_job made, compute_event event) {
    made.after_events.push_back(event);
    return made;
  }

  held_compute begin_compute() {
    return held_compute{*events, device};
  }

  void submit(copy_job made) {
    ASSERT_EQ(engine->submit(std::move(made)), ec::none);
  }

  void poll() {
    engine->poll(done, fences);
  }

  /// Until nothing moves any more.
  void settle() {
    for (auto before = std::size_t{0};;) {
      stand_in::run_all();
      poll();
      if (stand_in::runnable() == 0 && done.size() == before)
        return;
      before = done.size();
    }
  }

  [[nodiscard]] std::vector<job_id> reported() const {
    auto ids = std::vector<job_id>{};
    for (const auto& x : done)
      ids.push_back(x.job);
    return ids;
  }

  [[nodiscard]] static bool open(const std::optional<fence>& what) {
    const auto status
      = ::cudaEventQuery(reinterpret_cast<cudaEvent_t>(what->handle));
    ignore(status);
    return status == cudaSuccess;
  }

  [[nodiscard]] int wakes() const {
    return *wakes_;
  }

  int device = 0;
  std::size_t expected_refusals = 0;
  bool expects_loss = false;
  bool expects_leaks = false;
  std::shared_ptr<compute_events> events;
  std::shared_ptr<pool_registration> pool;
  std::unique_ptr<copy_engine> engine;
  std::vector<completion> done;
  std::vector<step_id> fences;

private:
  // Engines that leak what they hold may call late.
  std::shared_ptr<std::atomic<int>> wakes_
    = std::make_shared<std::atomic<int>>();
  std::optional<host_memory> slots_;
  device_buffer blocks_;
};

} // namespace kvtide::gpu
