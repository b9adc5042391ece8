// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/decode_loop.hpp"

#include "bench/copy/quantiles.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::bench {

namespace {

using gpu::check;

constexpr std::uint32_t kernels = 8;
constexpr double kernel_seconds = 20e-6;
constexpr std::uint64_t upload_bytes = 4u << 10;
constexpr std::uint64_t most_bytes = 128u << 20;
constexpr std::uint64_t first_guess = 32u << 20;
constexpr std::uint64_t granule = 1u << 20;
constexpr std::uint64_t quick_bytes = 64u << 10;

template <class T>
error take(result<T> made, T& out) {
  if (!made)
    return made.failure();
  out = std::move(made).value();
  return {};
}

result<double> seconds_between(const gpu::cuda_event& first,
                               const gpu::cuda_event& last) {
  auto ms = 0.0f;
  if (auto failed = check("cudaEventElapsedTime",
                          ::cudaEventElapsedTime(&ms, first.get(), last.get()));
      failed.code != ec::none)
    return failed;
  // The clock has steps: nothing takes no time at all.
  return std::max(static_cast<double>(ms), 1e-4) / 1e3;
}

} // namespace

error decode_loop::start(bool quick) {
  for (auto failed :
       {take(
          gpu::make_device_buffer(kernels * (quick ? quick_bytes : most_bytes)),
          memory_),
        take(gpu::make_device_buffer(upload_bytes), inputs_),
        take(gpu::make_pinned_buffer(upload_bytes), source_),
        take(gpu::make_stream(), stream_), take(gpu::make_event(true), begin_),
        take(gpu::make_event(true), uploaded_),
        take(gpu::make_event(true), end_)})
    if (failed.code != ec::none)
      return failed;
  if (quick)
    return capture(quick_bytes);
  if (auto failed = capture(first_guess); failed.code != ec::none)
    return failed;
  auto taken = times{};
  // The first ones are slow.
  for (auto turn = 0; turn < 2; ++turn) {
    taken = {};
    if (auto failed = run(50, taken); failed.code != ec::none)
      return failed;
  }
  for (std::size_t i = 0; i < taken.iteration.size(); ++i)
    taken.iteration[i] -= taken.upload[i];
  const auto one = quantiles_of(taken.iteration).p50 / kernels;
  const auto scale = one > 0 ? kernel_seconds / one : 1.0;
  const auto wanted = static_cast<std::uint64_t>(std::min(
    static_cast<double>(most_bytes), static_cast<double>(first_guess) * scale));
  return capture(std::max(granule, wanted / granule * granule));
}

error decode_loop::capture(std::uint64_t bytes) {
  decode_graph* made = nullptr;
  if (auto failed = check(
        "capturing the decode loop",
        make_decode_graph(memory_.get(), bytes, kernels, stream_.get(), &made));
      failed.code != ec::none)
    return failed;
  graph_ = decode_graph_owner{made};
  bytes_ = bytes;
  return {};
}

error decode_loop::run(std::uint32_t iterations, times& out) {
  for (std::uint32_t i = 0; i < iterations; ++i)
    if (auto failed = iterate(out); failed.code != ec::none)
      return failed;
  return {};
}

error decode_loop::iterate(times& out) {
  const auto stream = stream_.get();
  for (auto failed :
       {check("cudaEventRecord", ::cudaEventRecord(begin_.get(), stream)),
        check("cudaMemcpyAsync",
              ::cudaMemcpyAsync(inputs_.get(), source_.get(), upload_bytes,
                                cudaMemcpyHostToDevice, stream)),
        check("cudaEventRecord", ::cudaEventRecord(uploaded_.get(), stream)),
        check("cudaGraphLaunch", launch_decode_graph(graph_.get(), stream)),
        check("cudaEventRecord", ::cudaEventRecord(end_.get(), stream)),
        check("cudaEventSynchronize", ::cudaEventSynchronize(end_.get()))})
    if (failed.code != ec::none)
      return failed;
  const auto upload = seconds_between(begin_, uploaded_);
  if (!upload)
    return upload.failure();
  const auto iteration = seconds_between(begin_, end_);
  if (!iteration)
    return iteration.failure();
  out.upload.push_back(upload.value());
  out.iteration.push_back(iteration.value());
  return {};
}

} // namespace kvtide::bench
