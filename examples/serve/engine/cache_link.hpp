// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"
#include "kvtide/runtime.hpp"

#include "examples/serve/engine/device_memory.hpp"
#include "examples/serve/engine/engine_options.hpp"

#include <memory>
#include <string>

namespace serve {

/// A runtime of kvtide that has the device's memory: what the engine calls, and
/// the rank side beside it. Both are the engine's thread's.
class cache_link {
public:
  /// Starts a runtime and registers the memory. Blocks for milliseconds.
  /// @param memory must outlive this object
  /// @param off answers like a cache without room, without threads or memory
  static kvtide::result<std::unique_ptr<cache_link>>
  start(const engine_options& opts, device_memory& memory,
        const std::string& fingerprint, bool off);

  [[nodiscard]] kvtide::runtime& calls() noexcept {
    return runtime_;
  }

  [[nodiscard]] kvtide::rank& side() noexcept {
    return runtime_.local_rank(0);
  }

  [[nodiscard]] bool off() const noexcept {
    return off_;
  }

private:
  cache_link(kvtide::runtime what, bool off)
    : runtime_(std::move(what)), off_(off) {
    // nop
  }

  kvtide::runtime runtime_;
  bool off_;
};

} // namespace serve
