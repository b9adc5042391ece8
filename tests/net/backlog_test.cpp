// SPDX-License-Identifier: Apache-2.0

/// @file
/// A peer that stops to read costs a bounded amount of memory and one line in
/// the log, and nobody else notices.

#include "messages/all.hpp"
#include "net/caf_network.hpp"
#include "net/endpoint.hpp"
#include "tests/net/log_ear.hpp"
#include "tests/support/ear.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

using namespace std::chrono_literals;

namespace kvtide {
namespace {

constexpr std::size_t backlog = std::size_t{1} << 20;

/// What comes in, for a thread that waits for it.
template <class Key, class Value>
class desk {
public:
  void put(const Key& key, Value value) {
    const auto guard = std::lock_guard{mutex_};
    content_[key] = std::move(value);
    changed_.notify_all();
  }

  /// @returns a default if it does not come
  Value await(const Key& key) {
    auto guard = std::unique_lock{mutex_};
    changed_.wait_for(guard, test::patience,
                      [&] { return content_.count(key) > 0; });
    return content_.count(key) > 0 ? content_[key] : Value{};
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Value> content_;
};

/// Who has said what his name is.
using guests = desk<std::string, caf::strong_actor_ptr>;

directory_actor::behavior_type host(directory_actor::pointer self,
                                    std::shared_ptr<guests> book) {
  return {
    [self, book](const msg::enroll& x) {
      book->put(x.replica, self->current_sender());
    },
    [](const msg::withdraw&) {},
    [](const msg::publish&) {},
    [](const msg::ask_replicas&) {},
  };
}

using guest_actor = directory_seeker::extend<caf::reacts_to<msg::enrolled>>;

/// Words by their number.
using words = desk<std::uint64_t, bool>;

guest_actor::behavior_type guest(guest_actor::pointer self, std::string name,
                                 std::shared_ptr<words> heard) {
  return {
    [self, name](const msg::knock& x) {
      self->send(caf::actor_cast<directory_actor>(x.door),
                 msg::enroll{msg::protocol_version, name, 1});
    },
    [heard](const msg::enrolled& x) { heard->put(x.incarnation, true); },
  };
}

/// An actor system with a network.
struct end {
  explicit end(std::shared_ptr<net::caf_network> network)
    : net(std::move(network)) {
    register_messages(config);
    config.set("logger.verbosity", caf::atom("quiet"));
    net->prepare(config);
    system.emplace(config);
  }

  ~end() {
    net->close();
  }

  std::shared_ptr<net::caf_network> net;
  caf::actor_system_config config;
  std::optional<caf::actor_system> system;
};

/// One that has come, and hears.
struct guest_end : end {
  guest_end(const network_options& opts, const std::string& address,
            std::string name)
    : end(
      std::make_shared<net::caf_network>(opts, std::vector<net::endpoint>{})),
      self(system->spawn(guest, std::move(name), heard)) {
    const auto opened = net->open_seeker(*system, self, address);
    EXPECT_EQ(opened.code, ec::none) << opened.text;
  }

  ~guest_end() {
    caf::anon_send_exit(self, caf::exit_reason::user_shutdown);
  }

  std::shared_ptr<words> heard = std::make_shared<words>();
  guest_actor self;
};

/// While it lives, somebody neither reads nor writes.
class deaf {
public:
  explicit deaf(caf::actor_system& system) {
    system.middleman().backend().post(
      [over = over_.get_future().share()] { over.wait(); });
  }

  ~deaf() {
    over_.set_value();
  }

private:
  std::promise<void> over_;
};

TEST(Backlog, OfAPeerThatDoesNotReadIsBounded) {
  auto ear = test::log_ear{};
  auto opts = network_options{};
  opts.detection = 60s; // Not for its silence.
  const auto where
    = net::resolve(core::read_peer_address("127.0.0.1:0", "listen").value(),
                   "listen")
        .value();
  auto engine = end{std::make_shared<net::caf_network>(opts, where, backlog)};
  const auto book = std::make_shared<guests>();
  const auto door = engine.system->spawn(host, book);
  const auto opened = engine.net->open_directory(*engine.system, door);
  ASSERT_EQ(opened.code, ec::none) << opened.text;
  auto slow = guest_end{opts, engine.net->address(), "slow"};
  auto quick = guest_end{opts, engine.net->address(), "quick"};
  const auto to_slow
    = caf::actor_cast<directory_user_port>(book->await("slow"));
  const auto to_quick
    = caf::actor_cast<directory_user_port>(book->await("quick"));
  ASSERT_TRUE(to_slow);
  ASSERT_TRUE(to_quick);
  {
    const auto stopped = deaf{*slow.system};
    // More than the kernel takes.
    for (std::uint64_t i = 1; i <= 64; ++i) {
      caf::anon_send(to_slow, msg::enrolled{i, std::string(1 << 20, 'x')});
      caf::anon_send(to_quick, msg::enrolled{i, std::string(1 << 10, 'x')});
    }
    EXPECT_NE(ear.await("it does not read what it is sent"), "") << ear.text();
    caf::anon_send(to_quick, msg::enrolled{65, {}});
    EXPECT_TRUE(quick.heard->await(65));
    EXPECT_EQ(ear.count("it does not read what it is sent"), 1U) << ear.text();
    EXPECT_EQ(ear.count(" is gone"), 1U) << ear.text();
  }
  caf::anon_send_exit(door, caf::exit_reason::user_shutdown);
}

} // namespace
} // namespace kvtide
