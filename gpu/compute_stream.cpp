// SPDX-License-Identifier: Apache-2.0

#include "kvtide/gpu.hpp"

#include "gpu/cuda/device_work.hpp"
#include "gpu/work_queue.hpp"

#include <cstring>
#include <utility>

namespace kvtide::gpu {

work_queue::~work_queue() = default;

namespace {

/// Plain memory: whatever is asked for is over before the call returns.
class host_queue final : public work_queue {
public:
  error to_device(void* destination, const void* source,
                  std::uint64_t bytes) override {
    if (bytes > 0)
      std::memcpy(destination, source, bytes);
    return {};
  }

  error to_host(void* destination, const void* source,
                std::uint64_t bytes) override {
    return to_device(destination, source, bytes);
  }

  error wait_for(std::uint64_t) override {
    return {ec::invalid_argument,
            "a stream of the host device cannot wait for an event: make the "
            "fence with the copier of the same device"};
  }

  error synchronize() override {
    return {};
  }

  std::uint64_t handle() const noexcept override {
    return 0;
  }
};

} // namespace

struct compute_stream::impl {
  std::unique_ptr<work_queue> queue;
};

result<compute_stream> compute_stream::make(int device) {
  auto made = std::make_unique<impl>();
  if (device == host_device) {
    made->queue = std::make_unique<host_queue>();
  } else {
    auto queue = make_cuda_queue(device);
    if (!queue)
      return queue.failure();
    made->queue = std::move(queue).value();
  }
  return compute_stream{std::move(made)};
}

compute_stream::compute_stream(std::unique_ptr<impl> ptr) noexcept
  : impl_(std::move(ptr)) {
  // nop
}

compute_stream::compute_stream(compute_stream&&) noexcept = default;

compute_stream& compute_stream::operator=(compute_stream&&) noexcept = default;

compute_stream::~compute_stream() = default;

error compute_stream::copy_to_device(void* destination, const void* source,
                                     std::uint64_t bytes) {
  return impl_->queue->to_device(destination, source, bytes);
}

error compute_stream::copy_to_host(void* destination, const void* source,
                                   std::uint64_t bytes) {
  return impl_->queue->to_host(destination, source, bytes);
}

error compute_stream::wait(const fence& until) {
  switch (until.kind) {
    case fence::kind_t::none:
      return {};
    case fence::kind_t::event:
      return impl_->queue->wait_for(until.handle);
  }
  return {ec::invalid_argument,
          "a stream cannot wait for such a fence: enqueue the compute once "
          "poll has named its step"};
}

error compute_stream::synchronize() {
  return impl_->queue->synchronize();
}

std::uint64_t compute_stream::handle() const noexcept {
  return impl_->queue->handle();
}

} // namespace kvtide::gpu
