// SPDX-License-Identifier: Apache-2.0

/// @file
/// The CUDA engine in tests: on the stand-in as on a GPU.

#pragma once

#include "gpu/cuda/compute_events.hpp"
#include "gpu/cuda/cuda_copy_engine.hpp"
#include "gpu/cuda/device_buffer.hpp"
#include "gpu/cuda/event.hpp"
#include "gpu/cuda/pinned_buffer.hpp"
#include "gpu/cuda/pool_registration.hpp"
#include "gpu/cuda/stream.hpp"
#include "gpu/host_memory.hpp"
#include "tests/gpu/engine_rig.hpp"
#include "tests/gpu/test_memory.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace kvtide::gpu {

/// Device memory and a host pool that is pinned, or plain.
class cuda_home final : public memory_home {
public:
  cuda_home(std::size_t block_bytes, std::size_t slot_bytes, bool pinned);

  ~cuda_home() override;

  std::uint8_t* blocks() override;

  std::uint8_t* slots() override;

  void write(std::uint8_t* dst, const std::uint8_t* src,
             std::size_t bytes) override;

  void read(std::uint8_t* dst, const std::uint8_t* src,
            std::size_t bytes) override;

  /// Null if the pool is plain memory.
  std::shared_ptr<pool_registration> pool;

private:
  bool on_device(const std::uint8_t* at) const;

  void copy(void* dst, const void* src, std::size_t bytes);

  std::size_t block_bytes_;
  device_buffer blocks_;
  host_memory slots_;
  cuda_stream stream_;
};

/// What a kind of test does with the engine, beyond what the rig itself sets.
using configure = std::function<void(cuda_engine_config&)>;

class cuda_rig final : public engine_rig {
public:
  cuda_rig(host_engine_config config, memory_home& memory,
           const configure& how);

  ~cuda_rig() override;

  std::optional<fence> make_fence(step_id step,
                                  const std::vector<job_id>& jobs) override;

  compute_event begin_compute() override;

  void end_compute(compute_event event,
                   const std::function<void()>& write) override;

  void end_compute(compute_event event) override;

  void destroy_engine() override;

  void run(std::size_t jobs) override;

  void run_a_little() override;

  bool open(const std::optional<fence>& f, step_id step) override;

  bool opens(const std::optional<fence>& f, step_id step) override;

private:
  /// Compute that a test holds, in a stream of its own.
  struct compute {
    cuda_stream where;
    pinned_buffer flag;
    const std::uint32_t* on_device = nullptr;
    bool over = false;
  };

  void let_go(compute& what);

  std::shared_ptr<compute_events> events_;
  std::map<std::uint64_t, compute> computes_;
  /// Waits for a fence as a compute stream does.
  struct consumer {
    cuda_stream where;
    cuda_event behind;
  };

  std::vector<consumer> consumers_;
};

} // namespace kvtide::gpu
