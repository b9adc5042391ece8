// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_rig.hpp"

#include "gpu/cuda/handles.hpp"
#include "tests/gpu/compute_gate.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace kvtide::gpu {

namespace {

void require(const char* call, cudaError_t status) {
  if (const auto failed = check(call, status); failed.code != ec::none)
    throw std::runtime_error{failed.text};
}

template <class T>
T require(result<T> made) {
  if (!made)
    throw std::runtime_error{made.failure().text};
  return std::move(made).value();
}

/// As long as a test waits for what it hopes will not come.
constexpr auto a_little = std::chrono::milliseconds{10};

} // namespace

// -- memory -------------------------------------------------------------------

cuda_home::cuda_home(std::size_t block_bytes, std::size_t slot_bytes,
                     bool pinned)
  : block_bytes_(block_bytes),
    blocks_(require(make_device_buffer(block_bytes))),
    slots_(require(host_memory::map(slot_bytes))),
    stream_(require(make_stream())) {
  if (!pinned)
    return;
  pool = require(pool_registration::make(0));
  if (const auto refused = pool->add(slots_.data(), slot_bytes);
      refused.code != ec::none)
    throw std::runtime_error{refused.text};
}

cuda_home::~cuda_home() {
  if (pool)
    pool->remove(slots_.data());
}

std::uint8_t* cuda_home::blocks() {
  return static_cast<std::uint8_t*>(blocks_.get());
}

std::uint8_t* cuda_home::slots() {
  return reinterpret_cast<std::uint8_t*>(slots_.data());
}

void cuda_home::write(std::uint8_t* dst, const std::uint8_t* src,
                      std::size_t bytes) {
  if (on_device(dst))
    copy(dst, src, bytes);
  else
    memory_home::write(dst, src, bytes);
}

void cuda_home::read(std::uint8_t* dst, const std::uint8_t* src,
                     std::size_t bytes) {
  if (on_device(src))
    copy(dst, src, bytes);
  else
    memory_home::read(dst, src, bytes);
}

bool cuda_home::on_device(const std::uint8_t* at) const {
  const auto* base = static_cast<const std::uint8_t*>(blocks_.get());
  return at >= base && at < base + block_bytes_;
}

void cuda_home::copy(void* dst, const void* src, std::size_t bytes) {
  require("cudaMemcpyAsync",
          ::cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream_.get()));
  require("cudaStreamSynchronize", ::cudaStreamSynchronize(stream_.get()));
}

// -- rig ----------------------------------------------------------------------

cuda_rig::cuda_rig(host_engine_config config, memory_home& memory,
                   const configure& how)
  : engine_rig(std::move(config)), events_(require(compute_events::make(0))) {
  auto made = cuda_engine_config{};
  made.wake = config_.wake;
  made.events = events_;
  made.pool = static_cast<cuda_home&>(memory).pool;
  made.streams_per_direction = config_.streams_per_direction;
  made.fault = config_.fault;
  // Nothing is measured in a test.
  made.slice_bytes = 16u << 10;
  made.kernel_below = 0;
  made.bounce_bytes = 10'000;
  how(made);
  engine_rig::start(make_cuda_copy_engine(std::move(made)));
}

cuda_rig::~cuda_rig() {
  destroy_engine();
}

std::optional<fence> cuda_rig::make_fence(step_id step,
                                          const std::vector<job_id>& jobs) {
  const auto made = engine().make_fence(step, jobs);
  if (!made || made->kind != fence::kind_t::event)
    return made;
  const auto& added = consumers_.emplace_back(
    consumer{require(make_stream()), require(make_event())});
  require("cudaStreamWaitEvent",
          ::cudaStreamWaitEvent(
            added.where.get(), reinterpret_cast<cudaEvent_t>(made->handle), 0));
  require("cudaEventRecord",
          ::cudaEventRecord(added.behind.get(), added.where.get()));
  return fence{fence::kind_t::event, to_number(added.behind.get())};
}

compute_event cuda_rig::begin_compute() {
  auto made = compute{};
  made.where = require(make_stream());
  made.flag = require(make_pinned_buffer(sizeof(std::uint32_t)));
  auto* flag = static_cast<std::uint32_t*>(made.flag.get());
  *flag = 0;
  made.on_device
    = static_cast<const std::uint32_t*>(require(device_address_of(flag)));
  require("kernel", launch_gate(made.on_device, made.where.get()));
  const auto handle = require(events_->record(to_number(made.where.get())));
  computes_.emplace(handle, std::move(made));
  return {handle};
}

void cuda_rig::end_compute(compute_event what,
                           const std::function<void()>& write) {
  run_a_little();
  write();
  end_compute(what);
}

void cuda_rig::end_compute(compute_event what) {
  let_go(computes_.at(what.handle));
}

void cuda_rig::let_go(compute& what) {
  if (std::exchange(what.over, true))
    return;
  open_gate(static_cast<std::uint32_t*>(what.flag.get()), what.on_device);
  require("cudaStreamSynchronize", ::cudaStreamSynchronize(what.where.get()));
}

void cuda_rig::destroy_engine() {
  // Copies that are enqueued cannot be called back: they end with the compute.
  for (auto& [handle, what] : computes_)
    let_go(what);
  engine_rig::destroy_engine();
}

void cuda_rig::run(std::size_t jobs) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  // Polls even if nobody woke it: a GPU's host functions share one thread,
  // which a test may hold.
  for (poll(); done.size() < jobs; poll()) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "the engine is silent, " << done.size() << " of " << jobs
                    << " jobs were reported";
      return;
    }
    (void)wake_.wait(a_little);
  }
}

void cuda_rig::run_a_little() {
  while (wake_.wait(a_little))
    poll();
  poll();
}

bool cuda_rig::open(const std::optional<fence>& f, step_id step) {
  poll();
  if (!f)
    return std::find(fences.begin(), fences.end(), step) != fences.end();
  if (f->kind == fence::kind_t::none)
    return true;
  const auto status
    = ::cudaEventQuery(reinterpret_cast<cudaEvent_t>(f->handle));
  if (status != cudaSuccess && status != cudaErrorNotReady)
    ADD_FAILURE() << ::cudaGetErrorString(status);
  ignore(status);
  return status == cudaSuccess;
}

bool cuda_rig::opens(const std::optional<fence>& f, step_id step) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!open(f, step)) {
    if (std::chrono::steady_clock::now() > deadline)
      return false;
    (void)wake_.wait(std::chrono::milliseconds{1});
  }
  return true;
}

} // namespace kvtide::gpu
