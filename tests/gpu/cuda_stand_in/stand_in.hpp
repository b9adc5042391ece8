// SPDX-License-Identifier: Apache-2.0

/// @file
/// A CUDA machine made of memory and threads, for tests: its library defines
/// the functions of `cuda_runtime_api.h` and is linked where cudart would be.
/// It does what the documentation promises and nothing that works only by luck.
/// This header is how a test sets the machine up, drives it and questions it.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvtide::stand_in {

/// What the machine is like.
struct settings {
  static constexpr std::uint64_t unlimited
    = std::numeric_limits<std::uint64_t>::max();

  /// 0: cudaGetDeviceCount gives `without_devices`.
  int devices = 1;
  /// cudaErrorNoDevice, or cudaErrorInsufficientDriver.
  cudaError_t without_devices = cudaErrorNoDevice;
  /// Everything that is left to chance follows from it.
  std::uint64_t seed = 1;
  /// How many streams work at a time, in the background. 0: manual, nothing
  /// works but in `run`, `run_all` and calls that wait, on the caller's thread,
  /// and the same seed and calls give the same run.
  std::uint32_t threads = 2;
  int driver_version = CUDART_VERSION;
  int runtime_version = CUDART_VERSION;
  /// Bytes of memory of each device.
  std::uint64_t device_memory = std::uint64_t{1} << 30;
  /// Bytes that one cudaHostRegister takes.
  std::uint64_t largest_registration = unlimited;
  /// Bytes that all registrations together take, as RLIMIT_MEMLOCK.
  std::uint64_t registration_limit = unlimited;
  /// Devices see registered host memory at an address that hosts cannot use.
  bool registered_memory_has_other_device_address = false;
  /// Lets the host read and write at device addresses, which no GPU does.
  bool host_can_use_device_addresses = false;
  /// A sticky error of one device loses the contexts of all.
  bool devices_fall_together = false;
  /// Of the host memory next to each device; -1: unknown.
  int numa_node = -1;
  /// Answers of cudaDeviceGetAttribute other than the machine's own, by number.
  std::map<int, int> attributes;
};

// -- machine ------------------------------------------------------------------

/// Makes a fresh machine; the calling threads' last errors, current devices and
/// capture modes are fresh, too. No other thread may be in a CUDA call. Work
/// that the old one had not done is dropped. Handles of the old machine stay
/// invalid for ever. Without it, the first call starts one with `settings{}`.
void start(const settings& wanted = {});

/// What was created and not given back: one line each. Things of a lost context
/// cannot be given back and are left out.
std::vector<std::string> leaks();

/// Calls that were wrong, since `start`: function, and what was wrong.
std::vector<std::string> refusals();

/// Calls that were right, but not what a fast program does.
std::vector<std::string> warnings();

/// Halves of operations that could run now: one per stream whose next operation
/// waits for nothing. For tests with `threads == 0`.
std::size_t runnable();

/// Runs one of them. @pre index < runnable()
void run(std::size_t index);

/// Runs halves in an order that the seed chooses until nothing is runnable.
void run_all();

/// @returns operations that were submitted and have not completed.
std::size_t pending();

/// How often a function was called since `start`, whatever came of it; "kernel"
/// for launches.
std::uint64_t calls(std::string_view function);

// -- kernels ------------------------------------------------------------------

/// Bytes at an address as the program under test knows it.
struct memory_range {
  const void* address = nullptr;
  std::size_t bytes = 0;
};

/// The door for twins of kernels: submits work to a stream as a launch does.
/// The halves run one after the other, with work of other streams between them;
/// empty ones are left out.
/// @param touches all that the halves read or write, at device addresses. What
///        a device cannot reach is an illegal address when the kernel runs.
/// @returns cudaErrorInvalidResourceHandle if the stream's device is not the
///          current one, and what other calls that enqueue return.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> first_half,
                    std::function<void()> second_half,
                    std::vector<memory_range> touches);

/// Where the bytes at a device address lie for the host: what a twin of a
/// kernel dereferences, and how tests look into device memory.
/// @returns nullptr if no device can use the address, or not that many bytes.
void* device_view(const void* address, std::size_t bytes);

/// The same as the type of the pointer.
template <class T>
T* device_view_of(const T* address, std::size_t count = 1) {
  return static_cast<T*>(device_view(address, count * sizeof(T)));
}

// -- faults -------------------------------------------------------------------

/// The `nth` next call (1: the next) of a function fails with `code`, without
/// doing anything. @param function as "cudaEventRecord"; "kernel" for launches.
/// @param sticky loses the current device's context, too.
void fail_call(std::string_view function, std::uint32_t nth, cudaError_t code,
               bool sticky = false);

/// Operations that touch the range stop after their first half. Ranges of
/// faults are of one allocation or registration that the machine knows by now,
/// at host or device addresses.
void hang(memory_range range);

/// Lets all that hangs go on; nothing hangs from now on.
void release_hanging();

/// Takes one `hang` of just this range back.
void release_hanging(memory_range range);

/// The next operation that touches the range loses its context when it runs.
void fail_when_run(memory_range range,
                   cudaError_t code = cudaErrorIllegalAddress);

/// Loses a context at once.
void lose_context(int device, cudaError_t code = cudaErrorIllegalAddress);

} // namespace kvtide::stand_in
