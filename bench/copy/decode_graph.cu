// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/decode_graph.hpp"

#include <new>

namespace kvtide::bench {

struct decode_graph {
  cudaGraphExec_t ready;
};

namespace {

constexpr unsigned int threads_per_block = 512;
constexpr unsigned int most_blocks = 4096;

/// Bound by memory, as the attention of a decode step is.
__global__ void read_and_write(uint4* data, std::uint64_t count) {
  const auto stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (auto i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    auto held = data[i];
    ++held.x;
    data[i] = held;
  }
}

cudaError_t launch_kernels(void* memory, std::uint64_t bytes,
                           std::uint32_t kernels, cudaStream_t stream) {
  const auto words = bytes / sizeof(uint4);
  const auto needed = (words + threads_per_block - 1) / threads_per_block;
  const auto blocks
    = static_cast<unsigned int>(needed < most_blocks ? needed : most_blocks);
  for (std::uint32_t i = 0; i < kernels; ++i) {
    read_and_write<<<blocks, threads_per_block, 0, stream>>>(
      static_cast<uint4*>(memory) + i * words, words);
    if (const auto status = cudaGetLastError(); status != cudaSuccess)
      return status;
  }
  return cudaSuccess;
}

} // namespace

cudaError_t make_decode_graph(void* memory, std::uint64_t bytes,
                              std::uint32_t kernels, cudaStream_t stream,
                              decode_graph** out) {
  if (const auto status
      = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      status != cudaSuccess)
    return status;
  auto launched = launch_kernels(memory, bytes, kernels, stream);
  cudaGraph_t captured = nullptr;
  const auto ended = cudaStreamEndCapture(stream, &captured);
  if (launched == cudaSuccess)
    launched = ended;
  cudaGraphExec_t ready = nullptr;
  if (launched == cudaSuccess)
    launched = cudaGraphInstantiate(&ready, captured, 0);
  if (captured != nullptr)
    cudaGraphDestroy(captured);
  if (launched == cudaSuccess)
    *out = new decode_graph{ready};
  return launched;
}

cudaError_t launch_decode_graph(decode_graph* what, cudaStream_t stream) {
  return cudaGraphLaunch(what->ready, stream);
}

cudaError_t destroy_decode_graph(decode_graph* what) {
  const auto status = cudaGraphExecDestroy(what->ready);
  delete what;
  return status;
}

} // namespace kvtide::bench
