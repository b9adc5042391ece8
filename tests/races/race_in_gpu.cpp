// SPDX-License-Identifier: Apache-2.0

// A copy engine is called by two threads at a time, and the source of a copy is
// written while the copy runs.

#include "gpu/host_copy_engine.hpp"

#include <array>
#include <cstddef>
#include <thread>
#include <utility>

int main() {
  using namespace kvtide;
  auto config = gpu::host_engine_config{};
  config.wake = [] {};
  auto made = gpu::make_host_copy_engine(std::move(config));
  if (!made.ok())
    return 1;
  auto engine = std::move(made).value();
  static auto source = std::array<std::byte, 1 << 20>{};
  static auto target = std::array<std::byte, 1 << 20>{};
  auto job = gpu::copy_job{};
  job.fragments.push_back({target.data(), source.data(), source.size(), 0});
  if (engine->submit(std::move(job)) != ec::none)
    return 1;
  for (auto& x : source)
    x = std::byte{1};
}
