// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <atomic>
#include <cstdlib>
#include <sys/mman.h>

namespace kvtide::stand_in {
namespace {

std::unique_ptr<machine>& the_machine() {
  static auto made = std::make_unique<machine>(settings{}, 1);
  return made;
}

} // namespace

bool& in_host_function() {
  thread_local bool running = false;
  return running;
}

machine& machine::current() {
  return *the_machine();
}

void machine::replace(const settings& wanted) {
  auto& made = the_machine();
  const auto next = made->generation + 1;
  // What is running may still ask for the machine.
  made->stop();
  made.reset();
  made = std::make_unique<machine>(wanted, next);
}

machine::machine(settings requested, std::uint64_t number)
  : wanted(std::move(requested)), generation(number),
    lost(static_cast<std::size_t>(wanted.devices), cudaSuccess),
    allocated_bytes(static_cast<std::size_t>(wanted.devices), 0),
    random(wanted.seed) {
  for (int device = 0; device < wanted.devices; ++device) {
    auto made = std::make_shared<stream>();
    made->id = new_handle();
    made->device = device;
    made->legacy = true;
    made->blocking = false;
    legacy_streams.push_back(made);
    streams.push_back(std::move(made));
  }
}

machine::~machine() {
  stop();
  for (const auto& [address, owned] : by_address)
    if (owned->kind != memory_kind::registered_host)
      std::free(owned->host);
  for (const auto& [address, bytes] : reserved)
    ::munmap(address, bytes);
}

void machine::stop() {
  mutex.lock();
  stopping = true;
  for (const auto& x : streams)
    x->wake.notify_all();
  mutex.unlock();
  for (const auto& x : streams)
    if (x->worker.joinable())
      x->worker.join();
}

caller& machine::me() {
  thread_local caller state;
  if (state.generation != generation)
    state = {generation};
  return state;
}

cudaError_t machine::admit(const char* function, needs what) {
  auto& state = me();
  state.function = function;
  ++calls[function];
  // CUDA Runtime API, cudaLaunchHostFunc: a host function must not make CUDA
  // calls; CUDA may refuse them.
  if (in_host_function())
    return refuse(cudaErrorNotPermitted, "called from a host function");
  for (auto fault = call_faults.begin(); fault != call_faults.end(); ++fault)
    if (fault->function == function && --fault->countdown == 0) {
      const auto [name, left, code, sticky] = *fault;
      call_faults.erase(fault);
      if (sticky)
        lose(state.device, code);
      return code;
    }
  if (what == needs::nothing)
    return cudaSuccess;
  if (wanted.devices == 0)
    return wanted.without_devices;
  // CUDA Runtime API, error codes: after an error that leaves the process in an
  // inconsistent state, all further work returns the same error.
  return what == needs::context ? context_of(state.device) : cudaSuccess;
}

cudaError_t machine::refuse(cudaError_t code, std::string sentence) {
  refusals.push_back(std::string{me().function} + ": " + std::move(sentence));
  return code;
}

void machine::warn(std::string sentence) {
  warnings.push_back(std::string{me().function} + ": " + std::move(sentence));
}

void machine::lose(int device, cudaError_t code) {
  for (int other = 0; other < wanted.devices; ++other)
    if (other == device || wanted.devices_fall_together) {
      auto& state = lost[static_cast<std::size_t>(other)];
      state = state == cudaSuccess ? code : state;
    }
  changed.notify_all();
}

cudaError_t machine::context_of(int device) const {
  return lost[static_cast<std::size_t>(device)];
}

cudaError_t machine::sticky_error() {
  return wanted.devices > 0 ? context_of(me().device) : cudaSuccess;
}

std::size_t machine::draw(std::size_t limit) {
  return static_cast<std::size_t>(random() % limit);
}

object_id machine::new_handle() {
  // Not an address of anything; never given twice, not even by the next
  // machine.
  static std::atomic<object_id> next{0x5cda'0000'0000};
  return next.fetch_add(0x100, std::memory_order_relaxed);
}

} // namespace kvtide::stand_in
