// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/device_work.hpp"

#include "gpu/cuda/device_buffer.hpp"
#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/devices.hpp"
#include "gpu/cuda/handles.hpp"
#include "gpu/cuda/stream.hpp"

#include <utility>

namespace kvtide::gpu {

namespace {

class cuda_queue final : public work_queue {
public:
  cuda_queue(int device, cuda_stream made) noexcept
    : device_(device), stream_(std::move(made)) {
    // nop
  }

  ~cuda_queue() override {
    const device_scope scope{device_};
    stream_ = {};
  }

  error to_device(void* destination, const void* source,
                  std::uint64_t bytes) override {
    return copy(destination, source, bytes, cudaMemcpyHostToDevice);
  }

  error to_host(void* destination, const void* source,
                std::uint64_t bytes) override {
    return copy(destination, source, bytes, cudaMemcpyDeviceToHost);
  }

  error wait_for(std::uint64_t event) override {
    const device_scope scope{device_};
    return check("cudaStreamWaitEvent",
                 ::cudaStreamWaitEvent(
                   stream_.get(), reinterpret_cast<cudaEvent_t>(event), 0));
  }

  error synchronize() override {
    const device_scope scope{device_};
    return check("cudaStreamSynchronize",
                 ::cudaStreamSynchronize(stream_.get()));
  }

  std::uint64_t handle() const noexcept override {
    return to_number(stream_.get());
  }

private:
  error copy(void* destination, const void* source, std::uint64_t bytes,
             cudaMemcpyKind kind) {
    const device_scope scope{device_};
    return check(
      "cudaMemcpyAsync",
      ::cudaMemcpyAsync(destination, source, bytes, kind, stream_.get()));
  }

  int device_ = 0;
  cuda_stream stream_;
};

} // namespace

result<std::shared_ptr<std::byte>> allocate_cuda_memory(int device,
                                                        std::uint64_t bytes) {
  if (auto failed = check_device(device); failed.code != ec::none)
    return failed;
  const device_scope scope{device};
  auto made = make_device_buffer(bytes);
  if (!made)
    return made.failure();
  return std::shared_ptr<std::byte>{
    static_cast<std::byte*>(made.value().release()),
    [device](std::byte* first) {
      const device_scope there{device};
      ignore(::cudaFree(first));
    }};
}

result<std::unique_ptr<work_queue>> make_cuda_queue(int device) {
  if (auto failed = check_device(device); failed.code != ec::none)
    return failed;
  const device_scope scope{device};
  auto made = make_stream();
  if (!made)
    return made.failure();
  return std::unique_ptr<work_queue>{
    std::make_unique<cuda_queue>(device, std::move(made).value())};
}

} // namespace kvtide::gpu
