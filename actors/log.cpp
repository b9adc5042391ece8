// SPDX-License-Identifier: Apache-2.0

#include "actors/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace kvtide {

namespace {

std::shared_ptr<spdlog::logger> find_or_make() {
  if (auto found = spdlog::get("kvtide"); found != nullptr)
    return found;
  // Not registered: the name stays free for the host process.
  return std::make_shared<spdlog::logger>(
    "kvtide", std::make_shared<spdlog::sinks::stderr_sink_mt>());
}

} // namespace

spdlog::logger& log() {
  static const auto logger = find_or_make();
  return *logger;
}

} // namespace kvtide
