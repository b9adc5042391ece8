// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/copy_site.hpp"
#include "bench/copy/engine_owner.hpp"
#include "gpu/host_copy_engine.hpp"
#include "gpu/host_memory.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace kvtide::bench {

namespace {

class host_site final : public copy_site {
public:
  error start(const copy_options& options) {
    auto how = gpu::host_memory_options{};
    how.prefault = true;
    for (auto* side : {&blocks_, &slots_})
      for (auto& one : *side) {
        auto mapped = gpu::host_memory::map(
          (side == &blocks_ ? 2 : 1) * options.batch_bytes, how);
        if (!mapped)
          return mapped.failure();
        one = std::move(mapped).value();
      }
    auto made = engine_owner::make([](gpu::wake_function wake) {
      auto config = gpu::host_engine_config{};
      config.wake = std::move(wake);
      return gpu::make_host_copy_engine(std::move(config));
    });
    if (!made)
      return made.failure();
    engine_ = std::move(made).value();
    return {};
  }

  both_sides memory(job_kind kind) override {
    const auto i = static_cast<std::size_t>(kind);
    return {blocks_[i].data(), slots_[i].data()};
  }

  std::vector<way> ways(const std::vector<batch>& batches) override {
    return {
      {"one memcpy",
       [&batches] {
         return time_of([&batches]() -> error {
           for (const auto& what : batches)
             if (what.kind == job_kind::store)
               std::memcpy(what.where.slots, what.where.blocks, what.bytes);
             else
               std::memcpy(what.where.blocks, what.where.slots, what.bytes);
           return {};
         });
       }},
      {"memcpy per fragment",
       [&batches] {
         return time_of([&batches]() -> error {
           for (const auto& what : batches)
             for (const auto& part : what.fragments)
               std::memcpy(part.dst, part.src, part.bytes);
           return {};
         });
       }},
      {"engine",
       [this, &batches] {
         // What the owner makes of a plan is not the engine's time.
         auto jobs = std::vector<gpu::copy_job>{};
         for (const auto& what : batches)
           append_jobs(what, jobs);
         return time_of([&] { return engine_->copy(std::move(jobs)); });
       }},
    };
  }

  error move(void* dst, const void* src, std::uint64_t bytes) override {
    std::memcpy(dst, src, bytes);
    return {};
  }

private:
  // By `job_kind`; they outlive the engine.
  std::array<gpu::host_memory, 2> blocks_;
  std::array<gpu::host_memory, 2> slots_;
  std::unique_ptr<engine_owner> engine_;
};

} // namespace

result<std::unique_ptr<copy_site>> make_host_site(const copy_options& options) {
  auto made = std::make_unique<host_site>();
  if (auto failed = made->start(options); failed.code != ec::none)
    return failed;
  return std::unique_ptr<copy_site>{std::move(made)};
}

} // namespace kvtide::bench
