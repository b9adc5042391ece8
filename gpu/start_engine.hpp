// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/host_copy_engine.hpp"

#include <memory>
#include <system_error>
#include <utility>

namespace kvtide::gpu {

/// Checks the configuration, makes an engine and starts its threads. The same
/// for both host engines.
template <class Engine>
result<std::unique_ptr<copy_engine>> start_engine(host_engine_config config) {
  if (!config.wake)
    return error{ec::invalid_options, "the copy engine needs a wake function"};
  if (config.streams_per_direction == 0 || config.latency < 0)
    return error{ec::invalid_options,
                 "the copy engine needs at least one stream per direction and "
                 "a latency that is not negative"};
  auto engine = std::make_unique<Engine>(std::move(config));
  try {
    engine->start();
  } catch (const std::system_error&) {
    return error{ec::out_of_memory,
                 "the system refuses a thread for the copy engine: allow more "
                 "threads for this process, or use fewer streams"};
  }
  return std::unique_ptr<copy_engine>{std::move(engine)};
}

} // namespace kvtide::gpu
