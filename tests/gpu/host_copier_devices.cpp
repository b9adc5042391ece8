// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/copier_rig.hpp"

#include <vector>

namespace kvtide::gpu {

namespace {

copier_compute hold_on_host(copier& owner) {
  const auto event = owner.make_event().value();
  return {event, [&owner, event] { owner.complete_event(event); }};
}

} // namespace

std::vector<copier_device> copier_devices() {
  auto host = copier_device{"host"};
  host.hold = hold_on_host;
  return {host};
}

} // namespace kvtide::gpu
