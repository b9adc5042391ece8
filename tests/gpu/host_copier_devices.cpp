// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/copier_rig.hpp"

#include <vector>

namespace kvtide::gpu {

namespace {

held_compute hold_on_host(copier& owner) {
  const auto event = owner.make_event().value();
  return {event, [&owner, event] { owner.complete_event(event); }};
}

} // namespace

std::vector<copier_device> copier_devices() {
  return {{"host", host_device, hold_on_host}};
}

} // namespace kvtide::gpu
