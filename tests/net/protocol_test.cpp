// SPDX-License-Identifier: Apache-2.0

/// @file
/// A peer of another version of the library: understood enough to be refused.

#include "actors/network.hpp"
#include "messages/all.hpp"
#include "tests/net/deployment.hpp"
#include "tests/net/log_ear.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

namespace kvtide {
namespace {

/// Speaks the version after this one.
rank_link_port::behavior_type
link_of_the_future(rank_link_port::pointer self,
                   std::shared_ptr<std::promise<std::string>> refusal) {
  return {
    [self](const msg::knock& x) {
      self->send(caf::actor_cast<rank_door_actor>(x.door),
                 msg::join{msg::protocol_version + 1, "who knows"});
    },
    [](const msg::joined&) {},
    [refusal](const msg::join_refused& x) { refusal->set_value(x.reason); },
  };
}

class Protocol : public ::testing::Test, public test::deployment {};

TEST_F(Protocol, RefusesAVersionFromTheFuture) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
  auto ear = test::log_ear{};
  auto config = caf::actor_system_config{};
  register_messages(config);
  config.set("logger.verbosity", caf::atom("quiet"));
  auto net = make_network({}).value();
  net->prepare(config);
  auto system = caf::actor_system{config};
  auto refusal = std::make_shared<std::promise<std::string>>();
  auto heard = refusal->get_future();
  auto link = system.spawn(link_of_the_future, std::move(refusal));
  const auto opened = net->open_link(system, link, address_of(*engine_network));
  ASSERT_EQ(opened.code, ec::none) << opened.text;
  ASSERT_EQ(heard.wait_for(test::patience), std::future_status::ready);
  const auto why = heard.get();
  EXPECT_NE(why.find("version " + std::to_string(msg::protocol_version + 1)),
            std::string::npos)
    << why;
  EXPECT_EQ(ear.count("refused"), 1U) << ear.text();
  ASSERT_NO_FATAL_FAILURE(serve());
  net->close();
  caf::anon_send_exit(link, caf::exit_reason::user_shutdown);
}

} // namespace
} // namespace kvtide
