// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/machine.hpp"

namespace kvtide::stand_in {
namespace {

struct error_text {
  cudaError_t code;
  const char* name;
  const char* sentence;
};

constexpr error_text texts[] = {
#define KVTIDE_ERROR(name, value, sentence) {name, #name, sentence},
#define KVTIDE_VALUE(name, value)
#include "tests/gpu/cuda_stand_in/values.def"
#undef KVTIDE_ERROR
#undef KVTIDE_VALUE
};

const error_text* text_of(cudaError_t code) {
  for (const auto& x : texts)
    if (x.code == code)
      return &x;
  return nullptr;
}

} // namespace
} // namespace kvtide::stand_in

using namespace kvtide::stand_in;

const char* cudaGetErrorName(cudaError_t error) {
  const auto* text = text_of(error);
  return text != nullptr ? text->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const auto* text = text_of(error);
  return text != nullptr ? text->sentence : "unrecognized error code";
}

// CUDA Runtime API, cudaGetLastError: this thread's last error, which it
// clears; a sticky one stays.
cudaError_t cudaGetLastError() {
  auto last = cudaSuccess;
  const auto refused
    = call("cudaGetLastError", needs::nothing, [&](machine& m) {
        last = std::exchange(m.me().last_error, cudaSuccess);
        if (const auto sticky = m.sticky_error(); sticky != cudaSuccess)
          last = sticky;
        return cudaSuccess;
      });
  return refused != cudaSuccess ? refused : last;
}

cudaError_t cudaPeekAtLastError() {
  auto last = cudaSuccess;
  const auto refused
    = call("cudaPeekAtLastError", needs::nothing, [&](machine& m) {
        const auto sticky = m.sticky_error();
        last = sticky != cudaSuccess ? sticky : m.me().last_error;
        return cudaSuccess;
      });
  return refused != cudaSuccess ? refused : last;
}
