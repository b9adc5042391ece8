// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/background_load.hpp"

#include "gpu/cuda/batch_call.hpp"
#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/event.hpp"
#include "gpu/cuda/stream.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

namespace kvtide::bench {

namespace {

using gpu::check;
using clock = std::chrono::steady_clock;

/// Jobs of a paced load that may be under way.
constexpr std::size_t most_jobs = 4;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>{clock::now() - start}.count();
}

/// What `cudaMemcpyBatchAsync` takes.
struct batch_arguments {
  std::vector<void*> dsts;
  std::vector<void*> srcs;
  std::vector<std::size_t> sizes;
};

batch_arguments arguments_of(const batch& what) {
  auto out = batch_arguments{};
  for (const auto& part : what.fragments) {
    out.dsts.push_back(part.dst);
    out.srcs.push_back(const_cast<void*>(part.src));
    out.sizes.push_back(part.bytes);
  }
  return out;
}

result<double> copy_unsliced(int device, const batch& what,
                             background_load::talk& talk) {
  const gpu::device_scope scope{device};
  auto stream = gpu::make_stream();
  if (!stream)
    return stream.failure();
  auto ends = std::array<gpu::cuda_event, 2>{};
  for (auto& end : ends) {
    auto made = gpu::make_event();
    if (!made)
      return made.failure();
    end = std::move(made).value();
  }
  auto args = arguments_of(what);
  const auto where = stream.value().get();
  const auto start = clock::now();
  auto batches = std::uint64_t{0};
  while (!talk.stop) {
    const auto end = ends[batches % 2].get();
    // The one before the last.
    if (batches >= 2)
      if (auto failed
          = check("cudaEventSynchronize", ::cudaEventSynchronize(end));
          failed.code != ec::none)
        return failed;
    talk.in_full_swing = batches >= 2;
    for (auto failed :
         {check("cudaMemcpyBatchAsync",
                gpu::copy_batch(args.dsts.data(), args.srcs.data(),
                                args.sizes.data(), args.sizes.size(), where)),
          check("cudaEventRecord", ::cudaEventRecord(end, where))})
      if (failed.code != ec::none)
        return failed;
    ++batches;
  }
  if (auto failed
      = check("cudaStreamSynchronize", ::cudaStreamSynchronize(where));
      failed.code != ec::none)
    return failed;
  return static_cast<double>(batches * what.bytes) / seconds_since(start);
}

result<double> copy_paced(engine_owner& engine, const batch& what,
                          double bytes_per_second,
                          background_load::talk& talk) {
  auto jobs = std::vector<gpu::copy_job>{};
  append_jobs(what, jobs);
  auto next = std::size_t{0};
  auto submitted = 0.0;
  auto reported = 0.0;
  const auto wait = [&](std::chrono::nanoseconds time) -> error {
    auto bytes = engine.wait(time);
    if (!bytes)
      return bytes.failure();
    reported += static_cast<double>(bytes.value());
    talk.in_full_swing = talk.in_full_swing || reported > 0;
    return {};
  };
  const auto start = clock::now();
  while (!talk.stop) {
    const auto ahead = submitted / bytes_per_second - seconds_since(start);
    if (ahead <= 0 && engine.in_flight() < most_jobs) {
      const auto& job = jobs[next++ % jobs.size()];
      for (const auto& part : job.fragments)
        submitted += static_cast<double>(part.bytes);
      if (auto failed = engine.submit({job}); failed.code != ec::none)
        return failed;
      continue;
    }
    // Behind its pace it waits for a job to end, which wakes it.
    const auto time = ahead > 0 ? std::clamp(ahead, 10e-6, 1e-3) : 1e-3;
    if (auto failed
        = wait(std::chrono::nanoseconds{static_cast<std::int64_t>(time * 1e9)});
        failed.code != ec::none)
      return failed;
  }
  while (engine.in_flight() > 0)
    if (auto failed = wait(std::chrono::milliseconds{100});
        failed.code != ec::none)
      return failed;
  return reported / seconds_since(start);
}

} // namespace

background_load::background_load(body what)
  : thread_([this, what = std::move(what)] {
      outcome_ = what(talk_);
      ended_ = true;
    }) {
  // nop
}

background_load::~background_load() {
  talk_.stop = true;
  if (thread_.joinable())
    thread_.join();
}

void background_load::wait() {
  while (!talk_.in_full_swing && !ended_)
    std::this_thread::sleep_for(std::chrono::microseconds{100});
}

result<double> background_load::stop() {
  talk_.stop = true;
  thread_.join();
  return outcome_;
}

background_load::body unsliced_batches(int device, const batch& what) {
  return [device, &what](background_load::talk& talk) {
    return copy_unsliced(device, what, talk);
  };
}

background_load::body paced_jobs(engine_owner& engine, const batch& what,
                                 double bytes_per_second) {
  return [&engine, &what, bytes_per_second](background_load::talk& talk) {
    return copy_paced(engine, what, bytes_per_second, talk);
  };
}

} // namespace kvtide::bench
