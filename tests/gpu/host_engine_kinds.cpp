// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/engine_kinds.hpp"
#include "tests/gpu/host_rigs.hpp"

#include <memory>
#include <utility>

namespace kvtide::gpu {

namespace {

template <class Rig>
engine_kind host_kind(const char* name) {
  auto kind = engine_kind{};
  kind.name = name;
  kind.make_home = make_host_home;
  kind.make = [](host_engine_config config,
                 memory_home&) -> std::unique_ptr<engine_rig> {
    return std::make_unique<Rig>(std::move(config));
  };
  return kind;
}

} // namespace

std::vector<engine_kind> engine_kinds() {
  return {host_kind<real_rig>("host"), host_kind<virtual_rig>("host_virtual")};
}

} // namespace kvtide::gpu
