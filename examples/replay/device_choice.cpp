// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/device_choice.hpp"

#include "kvtide/gpu.hpp"

#include <utility>

namespace kvtide::replay {

namespace {

/// @returns no error if `--device-index` is there
error find_gpu(int index) {
  const auto count = gpu::device_count();
  if (!count)
    return count.failure();
  if (index < count.value())
    return {};
  return {ec::unsupported, "--device-index: there is no GPU "
                             + std::to_string(index) + "; the last one is "
                             + std::to_string(count.value() - 1)};
}

std::string name_of(int index) {
  const auto facts = gpu::describe_device(index);
  return "GPU " + std::to_string(index)
       + (facts ? " (" + facts.value().name + ")" : std::string{});
}

} // namespace

std::variant<chosen_device, early_exit> choose_device(replay_options opts) {
  if (opts.device == device_choice::host)
    return chosen_device{std::move(opts), {}};
  const auto wanted = opts.device == device_choice::cuda;
  if (auto missing = find_gpu(opts.device_index); missing.code != ec::none) {
    if (wanted)
      return early_exit{2, "kvtide-replay: " + missing.text};
    opts.device = device_choice::host;
    return chosen_device{std::move(opts),
                         "uses the host device: " + missing.text};
  }
  opts.device = device_choice::cuda;
  opts.clock = device_kind::host;
  opts.copy_latency_us = 0;
  opts.copy_bandwidth = 0;
  auto notice = wanted ? std::string{} : "uses " + name_of(opts.device_index);
  return chosen_device{std::move(opts), std::move(notice)};
}

} // namespace kvtide::replay
