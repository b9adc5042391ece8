// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/conformance/traffic.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace kvtide::conformance {

/// An actor system without threads and with a clock of its own: nothing moves
/// unless `run` or `advance` is called, and equal calls lead to equal runs. The
/// only place that knows CAF's test scheduler.
class stage {
public:
  struct config {
    /// A handler that does nothing: its messages are thrown away.
    std::optional<handler_name> stub;

    /// Told before a message is handled; may be empty.
    std::function<void(const std::string& sender, const handler_name& handler)>
      on_message;

    /// Messages that one call of `run` hands over before it gives up.
    std::size_t budget = 1'000'000;
  };

  explicit stage(config cfg);
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;

  /// Ends all actors that `spawn` made.
  ~stage();

  [[nodiscard]] caf::actor_system& system();

  template <class Function, class... Ts>
  auto spawn(Function function, Ts&&... xs) {
    auto handle = system().spawn(function, std::forward<Ts>(xs)...);
    keep(caf::actor_cast<caf::strong_actor_ptr>(handle));
    return handle;
  }

  /// Puts a message into `receiver`'s mailbox, as if `sender` had sent it.
  template <class Sender, class Receiver, class T>
  void send(const Sender& sender, const Receiver& receiver, T message) {
    caf::send_as(sender, receiver, std::move(message));
  }

  /// Hands over messages, one at a time, until nobody has one.
  /// @returns false if the budget was used up: the actors do not come to rest
  [[nodiscard]] bool run();

  /// Lets time pass, then does as `run`.
  [[nodiscard]] bool advance(std::chrono::nanoseconds span);

  /// Actors that live, whoever spawned them. One that had a message counts
  /// until it ends by itself, also if nobody else knows it any more.
  [[nodiscard]] std::size_t actors() const;

  [[nodiscard]] const traffic& handled() const noexcept;

private:
  struct impl;

  void keep(caf::strong_actor_ptr actor);

  std::unique_ptr<impl> impl_;
};

} // namespace kvtide::conformance
