// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace kvtide::gpu {

/// Bytes that one thread faults in before it takes the next ones.
inline constexpr std::uint64_t fault_share = std::uint64_t{64} << 20;

/// What makes the kernel find the pages of a range: takes its first byte, its
/// length and the bytes of a page, returns zero or an errno value. Called by
/// several threads.
using fault_function
  = std::function<int(std::byte*, std::uint64_t, std::uint64_t)>;

/// Faults in one range, by the advice for that or by writing a byte of each
/// page over itself where the kernel does not know the advice.
/// @returns zero or an errno value.
[[nodiscard]] int fault_pages(std::byte* data, std::uint64_t bytes,
                              std::uint64_t page_bytes) noexcept;

/// True if the kernel knows the advice, so that a page it cannot find is an
/// error of `fault_pages` and not a signal.
[[nodiscard]] bool faults_return_errors() noexcept;

/// Makes the kernel find every page of memory now; what lies in it stays. The
/// calling thread and up to `threads - 1` more take shares of `fault_share`
/// bytes, so memory of one share costs no thread. All of them have ended when
/// it returns. After an error no further share is taken.
/// @param data starts on a page; nobody else touches it meanwhile.
/// @param threads zero means one per core, at most 8: the kernel clears no
///        more pages per second with more of them.
/// @param fault only tests pass it.
/// @returns zero, or the errno value of the share that failed first.
[[nodiscard]] int fault_in_parallel(std::byte* data, std::uint64_t bytes,
                                    std::uint64_t page_bytes,
                                    std::uint32_t threads,
                                    const fault_function& fault = fault_pages);

} // namespace kvtide::gpu
