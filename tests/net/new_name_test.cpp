// SPDX-License-Identifier: Apache-2.0

#include "net/new_name.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/node_id.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>

namespace kvtide::net {
namespace {

struct named_system {
  named_system() {
    config.load<caf::io::middleman>();
    load_new_name(config);
    config.set("logger.verbosity", caf::atom("quiet"));
    config.set("scheduler.max-threads", std::size_t{1});
    system.emplace(config);
  }

  caf::actor_system_config config;
  std::optional<caf::actor_system> system;
};

// CAF's own names of two containers, or of two lives of one, may be the same.
TEST(NewName, IsNobodyElses) {
  auto first = named_system{};
  auto second = named_system{};
  // CAF's differ in their last byte alone.
  const auto name = to_string(first.system->node()).substr(0, 38);
  const auto other = to_string(second.system->node()).substr(0, 38);
  EXPECT_NE(name, other);
}

TEST(NewName, IsThatOfEveryActor) {
  auto uut = named_system{};
  auto& system = *uut.system;
  EXPECT_EQ(system.config_serv()->node(), system.node());
  const auto broker
    = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  EXPECT_EQ(broker.node(), system.node());
}

} // namespace
} // namespace kvtide::net
