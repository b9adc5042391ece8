// SPDX-License-Identifier: Apache-2.0

/// @file
/// Programs with and without a missing wait, for the thread sanitizer: it must
/// report a race in each that lacks one, although the copy has long been made,
/// and none in the others. Exit code 1 means that bytes were wrong.
///
///   missing_wait none|not_ready|other_stream|waits_device|waits_event|
///                waits_stream

#include "tests/gpu/cuda_stand_in/stand_in.hpp"

#include <cstring>
#include <string_view>
#include <thread>

namespace {

namespace machine = kvtide::stand_in;

cudaStream_t make_stream() {
  cudaStream_t made = nullptr;
  cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, 0);
  return made;
}

/// Until nothing is left to run, without learning anything about it.
void look_away() {
  while (machine::pending() > 0)
    std::this_thread::yield();
}

} // namespace

int main(int count, char** arguments) {
  const std::string_view how = count > 1 ? arguments[1] : "";
  constexpr std::size_t bytes = 4096;
  machine::start();
  void* host = nullptr;
  void* device = nullptr;
  cudaHostAlloc(&host, bytes, cudaHostAllocDefault);
  cudaMalloc(&device, bytes);
  std::memset(host, 0, bytes);
  const auto stream = make_stream();
  const auto other = make_stream();
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaMemsetAsync(device, 7, bytes, stream);
  cudaMemcpyAsync(host, device, bytes, cudaMemcpyDefault, stream);
  cudaEventRecord(event, stream);
  if (how == "none") {
    look_away();
  } else if (how == "other_stream") {
    look_away();
    cudaMemsetAsync(device, 8, bytes, other);
    cudaStreamSynchronize(other);
  } else if (how == "not_ready") {
    machine::hang({host, bytes});
    cudaStreamQuery(stream);
    cudaEventQuery(event);
    machine::release_hanging();
    look_away();
  } else if (how == "waits_event") {
    while (cudaEventQuery(event) == cudaErrorNotReady)
      std::this_thread::yield();
  } else if (how == "waits_stream") {
    cudaStreamWaitEvent(other, event);
    cudaStreamSynchronize(other);
  } else {
    cudaDeviceSynchronize();
  }
  const auto* seen = static_cast<const unsigned char*>(host);
  for (std::size_t i = 0; i < bytes; ++i)
    if (seen[i] != 7)
      return 1;
  return 0;
}
