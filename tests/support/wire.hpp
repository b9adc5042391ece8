// SPDX-License-Identifier: Apache-2.0

/// @file
/// A connection between two processes, in one actor system. CAF shows an actor
/// of another process as a proxy: here a stand-in hands what it hears to the
/// wire, which keeps it until the test lets it arrive.

#pragma once

#include "messages/all.hpp"
#include "tests/support/actor_world.hpp"
#include "tests/support/listen.hpp"
#include "tests/support/message_name.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/message.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace kvtide::test {

/// The ends of a wire.
enum class side { engine, rank };

/// One connection: after `cut` it stays cut, a new one is another object.
/// Messages between the same two actors arrive in their order, others as the
/// test likes. Outlived by its world.
class wire {
public:
  explicit wire(actor_world& world) : world_(world) {
    // nop
  }

  wire(const wire&) = delete;

  wire& operator=(const wire&) = delete;

  ~wire();

  /// Says that `actor` lives at `home`; without that, nobody on the other side
  /// can see who a message came from. Nobody runs.
  /// @returns how it is seen from the other side
  template <class Interface>
  Interface add(const Interface& actor, side home) {
    const auto real = caf::actor_cast<caf::strong_actor_ptr>(actor);
    auto out = world_.launch([this, real, home](pointer_of<Interface> self) {
      return listen<Interface>([=, this](const auto& x) {
        put(home, real, self->current_sender(), x);
      });
    });
    stand_ins_[real] = {home, caf::actor_cast<caf::strong_actor_ptr>(out)};
    return out;
  }

  /// Names of the messages that are under way to a side.
  [[nodiscard]] std::vector<std::string> under_way(side to) const;

  /// Lets the message at `index` of those arrive; nobody runs.
  /// @returns false if there is none, or an earlier one from the same sender to
  ///          the same receiver is still under way
  bool deliver(side to, std::size_t index = 0);

  /// Lets actors run and all messages of both directions arrive, until nothing
  /// happens any more.
  void flow();

  /// This side is told that the other can no longer be reached. What was under
  /// way to it is lost; what it sent before may still arrive. Nobody else runs.
  void cut(side at);

  void cut() {
    cut(side::engine);
    cut(side::rank);
  }

private:
  template <class Interface>
  using pointer_of = typename Interface::pointer;

  struct parcel {
    caf::strong_actor_ptr to;
    /// As the receiver sees it; may be null.
    caf::strong_actor_ptr from;
    std::string name;
    caf::message content;
  };

  struct stand_in {
    /// Of the actor that it stands for.
    side home = side::engine;
    caf::strong_actor_ptr actor;
  };

  template <class Message>
  void put(side home, const caf::strong_actor_ptr& to,
           const caf::strong_actor_ptr& from, Message x) {
    // Handles change on their way, as in CAF.
    if constexpr (std::is_same_v<Message, msg::knock>)
      x.door = seen(x.door);
    else if constexpr (std::is_same_v<Message, msg::joined>)
      x.scheduler = seen(x.scheduler);
    queue(home).push_back({to, seen(from), message_name(typeid(Message)),
                           caf::make_message(std::move(x))});
  }

  [[nodiscard]] caf::strong_actor_ptr
  seen(const caf::strong_actor_ptr& actor) const {
    const auto found = stand_ins_.find(actor);
    return found != stand_ins_.end() ? found->second.actor : nullptr;
  }

  [[nodiscard]] std::deque<parcel>& queue(side to) {
    return queues_[static_cast<std::size_t>(to)];
  }

  [[nodiscard]] const std::deque<parcel>& queue(side to) const {
    return queues_[static_cast<std::size_t>(to)];
  }

  actor_world& world_;
  std::map<caf::strong_actor_ptr, stand_in> stand_ins_;
  std::array<std::deque<parcel>, 2> queues_;
};

} // namespace kvtide::test
