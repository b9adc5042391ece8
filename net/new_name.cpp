// SPDX-License-Identifier: Apache-2.0

#include "net/new_name.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/node_id.hpp>

#include <cstdint>
#include <random>
#include <unistd.h>

namespace kvtide::net {

namespace {

caf::node_id random_name() {
  auto host = caf::node_id::default_data::host_id_type{};
  auto source = std::random_device{};
  for (auto& x : host)
    x = static_cast<std::uint8_t>(source());
  host[0] |= 1; // All zeros are no name.
  return caf::make_node_id(static_cast<std::uint32_t>(::getpid()), host);
}

/// Its turn comes after the middleman has set a name, and before any actor
/// that would carry it is spawned. It takes the place of CAF's OpenCL module,
/// which does not exist here.
class new_name final : public caf::actor_system::module {
public:
  explicit new_name(caf::actor_system& system) : system_(system) {
    // nop
  }

  void start() override {
    // nop
  }

  void stop() override {
    // nop
  }

  void init(caf::actor_system_config&) override {
    // The system itself is not constant, and nothing else can set this.
    const_cast<caf::node_id&>(system_.node()) = random_name();
  }

  id_t id() const override {
    return opencl_manager;
  }

  void* subtype_ptr() override {
    return this;
  }

private:
  caf::actor_system& system_;
};

} // namespace

void load_new_name(caf::actor_system_config& config) {
  config.module_factories.push_back(
    [](caf::actor_system& system) -> caf::actor_system::module* {
      return new new_name{system};
    });
}

} // namespace kvtide::net
