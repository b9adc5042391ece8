// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/copy_site.hpp"
#include "bench/copy/cuda_engine.hpp"
#include "bench/copy/cuda_memory.hpp"
#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/devices.hpp"
#include "gpu/cuda/stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kvtide::bench {

namespace {

using gpu::check;

class cuda_site final : public copy_site {
public:
  explicit cuda_site(int device) : scope_(device) {
    // nop
  }

  error start(const copy_options& options) {
    auto pool = gpu::pool_registration::make(options.gpu);
    if (!pool)
      return pool.failure();
    for (auto& one : memory_)
      if (auto failed = one.take(pool.value(), options.batch_bytes);
          failed.code != ec::none)
        return failed;
    for (auto& one : streams_) {
      auto made = gpu::make_stream();
      if (!made)
        return made.failure();
      one = std::move(made).value();
    }
    for (const auto path : options.paths) {
      auto made = make_cuda_engine(options, path, pool.value());
      if (!made)
        return made.failure();
      engines_.push_back({name_of(path), std::move(made).value()});
    }
    return {};
  }

  both_sides memory(job_kind kind) override {
    return memory_[static_cast<std::size_t>(kind)].sides();
  }

  std::vector<way> ways(const std::vector<batch>& batches) override {
    auto out = std::vector<way>{
      {"one cudaMemcpyAsync",
       [this, &batches] {
         return time_of([&] { return copy_as_one(batches); });
       }},
      {"cudaMemcpyAsync per fragment",
       [this, &batches] {
         return time_of([&] { return copy_each(batches); });
       }},
    };
    for (auto& one : engines_)
      out.push_back({one.path, [&batches, owner = one.owner.get()] {
                       auto jobs = std::vector<gpu::copy_job>{};
                       for (const auto& what : batches)
                         append_jobs(what, jobs);
                       return time_of(
                         [&] { return owner->copy(std::move(jobs)); });
                     }});
    return out;
  }

  error move(void* dst, const void* src, std::uint64_t bytes) override {
    if (auto failed
        = enqueue(dst, src, bytes, cudaMemcpyDefault, streams_[0].get());
        failed.code != ec::none)
      return failed;
    return wait();
  }

private:
  struct engine {
    const char* path;
    std::unique_ptr<engine_owner> owner;
  };

  static error enqueue(void* dst, const void* src, std::uint64_t bytes,
                       cudaMemcpyKind kind, cudaStream_t stream) {
    return check("cudaMemcpyAsync",
                 ::cudaMemcpyAsync(dst, src, bytes, kind, stream));
  }

  /// For each direction its own, so that they run at the same time.
  [[nodiscard]] cudaStream_t stream_of(const batch& what) const {
    return streams_[static_cast<std::size_t>(what.kind)].get();
  }

  static cudaMemcpyKind kind_of(const batch& what) {
    return what.kind == job_kind::store ? cudaMemcpyDeviceToHost
                                        : cudaMemcpyHostToDevice;
  }

  error wait() {
    for (auto& one : streams_)
      if (auto failed
          = check("cudaStreamSynchronize", ::cudaStreamSynchronize(one.get()));
          failed.code != ec::none)
        return failed;
    return {};
  }

  error copy_as_one(const std::vector<batch>& batches) {
    for (const auto& what : batches) {
      const auto stores = what.kind == job_kind::store;
      auto* dst = stores ? what.where.slots : what.where.blocks;
      auto* src = stores ? what.where.blocks : what.where.slots;
      if (auto failed
          = enqueue(dst, src, what.bytes, kind_of(what), stream_of(what));
          failed.code != ec::none)
        return failed;
    }
    return wait();
  }

  error copy_each(const std::vector<batch>& batches) {
    // In turns, so that no direction waits until the other one is enqueued.
    for (std::size_t i = 0; i < batches[0].fragments.size(); ++i)
      for (const auto& what : batches) {
        const auto& part = what.fragments[i];
        if (auto failed = enqueue(part.dst, part.src, part.bytes, kind_of(what),
                                  stream_of(what));
            failed.code != ec::none)
          return failed;
      }
    return wait();
  }

  // In the order in which they must not end.
  gpu::device_scope scope_;
  /// By `job_kind`, as the streams.
  std::array<cuda_memory, 2> memory_;
  std::array<gpu::cuda_stream, 2> streams_;
  std::vector<engine> engines_;
};

} // namespace

result<std::unique_ptr<copy_site>> make_cuda_site(const copy_options& options) {
  if (auto refused = gpu::check_device(options.gpu); refused.code != ec::none)
    return refused;
  auto made = std::make_unique<cuda_site>(options.gpu);
  if (auto failed = made->start(options); failed.code != ec::none)
    return failed;
  return std::unique_ptr<copy_site>{std::move(made)};
}

} // namespace kvtide::bench
