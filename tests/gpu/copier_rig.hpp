// SPDX-License-Identifier: Apache-2.0

/// @file
/// What tests of `copier` need of the device that they run on.

#pragma once

#include "kvtide/gpu.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::gpu {

/// Compute that has been enqueued and does not end.
struct copier_compute {
  /// For `copier::submit`.
  std::uint64_t event = 0;
  /// Lets it end. Must be called.
  std::function<void()> end;
};

/// A device that tests run on.
struct copier_device {
  const char* name;
  int device = host_device;
  /// Begins a test, says why there is no such device or nothing, and ends the
  /// test; may be null.
  void (*begin)() = nullptr;
  std::string (*missing)() = nullptr;
  void (*check)() = nullptr;
  /// Begins compute, on a stream of its own, that ends when the test says so.
  copier_compute (*hold)(copier&) = nullptr;

  friend void PrintTo(const copier_device& kind, std::ostream* out) {
    *out << kind.name;
  }
};

/// Those that the test program has; each program defines it.
std::vector<copier_device> copier_devices();

/// Memory of a device, a copier for it, and what it has reported so far.
/// Chunks have two blocks, slots hold one chunk.
class copier_rig {
public:
  static constexpr std::chrono::milliseconds patience{20'000};
  static constexpr std::uint32_t blocks = 16;
  static constexpr std::uint64_t block_bytes = 256;

  explicit copier_rig(int device, copier_options opts = options())
    : memory(device_memory::allocate(device, blocks * block_bytes).value()),
      stream(compute_stream::make(device).value()),
      copies(start(device, std::move(opts))) {
    kv.device = device;
    kv.tensors = {{memory.data(), memory.bytes(), memory.kind(), blocks,
                   block_bytes, block_bytes}};
    kv.references = {{0, 0, 0, 0, block_bytes}};
    if (device != host_device)
      kv.streams = {stream.handle()};
  }

  /// Eight slots.
  static copier_options options() {
    auto out = copier_options{};
    out.blocks_per_chunk = 2;
    out.host_bytes = 8 * 2 * block_bytes;
    // Two of a kind, so that their order hides no missing wait.
    out.host_threads = 2;
    out.cuda.streams_per_direction = 2;
    // Nothing is measured in a test.
    out.cuda.slice_bytes = 1 << 20;
    out.cuda.kernel_below = 0;
    return out;
  }

  registered_kv register_kv() {
    return copies.register_kv(kv).value();
  }

  /// One row.
  static job make_job(job_id id, job_kind kind, slot_id slot,
                      std::vector<block_id> of) {
    auto row = job_row{};
    row.slot = slot;
    row.blocks = std::move(of);
    return {id, kind, 0, {{std::move(row)}}};
  }

  void submit(job what, const std::vector<std::uint64_t>& events = {},
              const std::vector<job_id>& after = {}) {
    const auto refused = copies.submit(what, events, after);
    ASSERT_EQ(refused.code, ec::none) << refused.text;
  }

  /// Fills a block, and waits until it is filled.
  void fill(block_id block, int value) {
    const std::vector<std::byte> bytes(block_bytes,
                                       static_cast<std::byte>(value));
    ASSERT_EQ(stream.copy_to_device(at(block), bytes.data(), block_bytes).code,
              ec::none);
    ASSERT_EQ(stream.synchronize().code, ec::none);
  }

  /// True if all bytes of a block have this value now.
  bool holds(block_id block, int value) {
    std::vector<std::byte> bytes(block_bytes);
    EXPECT_EQ(stream.copy_to_host(bytes.data(), at(block), block_bytes).code,
              ec::none);
    EXPECT_EQ(stream.synchronize().code, ec::none);
    return bytes
        == std::vector<std::byte>(block_bytes, static_cast<std::byte>(value));
  }

  void poll() {
    auto news = copies.poll();
    for (auto& ended : news.jobs)
      ended_jobs.push_back(std::move(ended));
    for (const auto step : news.fences)
      open_steps.insert(step);
    unregistered = unregistered || news.unregistered;
  }

  /// Polls until that many jobs have ended in all.
  void run(std::size_t jobs) {
    run_until([&] { return ended_jobs.size() >= jobs; });
  }

  void run_until(const std::function<bool()>& over) {
    for (poll(); !over(); poll())
      ASSERT_TRUE(copies.wait(patience));
  }

  /// True if compute behind a fence may run by now.
  bool open(const std::optional<fence>& made, step_id step) const {
    return made ? made->kind == fence::kind_t::none
                : open_steps.count(step) > 0;
  }

  std::byte* at(block_id block) const {
    return memory.data() + block * block_bytes;
  }

  // Declared before the copier, which touches it.
  device_memory memory;
  compute_stream stream;
  copier copies;
  kv_memory kv;
  std::vector<copy_report> ended_jobs;
  std::set<step_id> open_steps;
  bool unregistered = false;

private:
  static copier start(int device, copier_options opts) {
    opts.device = device;
    return copier::start(std::move(opts)).value();
  }
};

} // namespace kvtide::gpu
