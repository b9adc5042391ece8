// SPDX-License-Identifier: Apache-2.0

/// @file
/// Where copies are measured: an engine, its memory, and what it is compared
/// with.

#pragma once

#include "kvtide/result.hpp"

#include "bench/copy/batch.hpp"
#include "bench/copy/options.hpp"
#include "bench/copy/results.hpp"
#include "bench/copy/turns.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kvtide::bench {

class copy_site {
public:
  copy_site() = default;

  copy_site(const copy_site&) = delete;

  copy_site& operator=(const copy_site&) = delete;

  virtual ~copy_site() = default;

  /// Memory for the batches of one direction, up to
  /// `copy_options::batch_bytes`.
  [[nodiscard]] virtual both_sides memory(job_kind kind) = 0;

  /// All batches at once, each way; `batches` outlives them. First by one copy
  /// per batch, which moves as many bytes but others; then by one copy per
  /// fragment; then by engines.
  [[nodiscard]] virtual std::vector<way> ways(const std::vector<batch>& batches)
    = 0;

  /// Copies between either side and ordinary memory.
  [[nodiscard]] virtual error move(void* dst, const void* src,
                                   std::uint64_t bytes)
    = 0;
};

/// Host engine, and one thread with `memcpy`.
[[nodiscard]] result<std::unique_ptr<copy_site>>
make_host_site(const copy_options& options);

/// CUDA engine by several paths, and bare CUDA calls.
/// @returns `ec::unsupported` without a GPU or in a build without CUDA
[[nodiscard]] result<std::unique_ptr<copy_site>>
make_cuda_site(const copy_options& options);

/// Measures all that the options ask for, and first that all engines copy what
/// they should. Says on standard error how far it is.
/// @param out gets one row per engine and batch, also if it fails
[[nodiscard]] error measure_copies(copy_site& site, const copy_options& options,
                                   std::vector<copy_row>& out);

} // namespace kvtide::bench
