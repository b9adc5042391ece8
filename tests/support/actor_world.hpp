// SPDX-License-Identifier: Apache-2.0

/// @file
/// Runs actors one message at a time, on the test's own thread and on a clock
/// that only the test moves. The one place that knows CAF's test scheduler.

#pragma once

#include "actors/device.hpp"
#include "messages/all.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/detail/test_actor_clock.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

namespace kvtide::test {

/// Wakes of copy threads, kept until the test's thread fetches them: CAF's test
/// scheduler must not hear of them on any other thread.
class wake_box {
public:
  void put(std::size_t device) {
    {
      const std::lock_guard lock{mutex_};
      woken_.insert(device);
    }
    changed_.notify_all();
  }

  /// Empties the box. Ascending.
  [[nodiscard]] std::set<std::size_t> take() {
    const std::lock_guard lock{mutex_};
    return std::exchange(woken_, {});
  }

  /// Waits until the box is not empty.
  /// @returns false if it stayed empty for `limit`, which only a broken test
  ///          or a broken engine sees.
  [[nodiscard]] bool wait(std::chrono::seconds limit) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, limit, [this] { return !woken_.empty(); });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::size_t> woken_;
};

/// An actor system in which nothing moves unless the test says so. Ends all
/// actors that it spawned when it goes.
class actor_world {
public:
  actor_world()
    : system_(config_),
      scheduler_(
        dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
    // Zero means "no timeout" to CAF.
    scheduler_.clock().current_time += std::chrono::hours{1};
  }

  actor_world(const actor_world&) = delete;

  actor_world& operator=(const actor_world&) = delete;

  ~actor_world() {
    for (const auto& x : actors_)
      caf::anon_send_exit(x, caf::exit_reason::kill);
    actors_.clear();
    devices_.clear();
    // A delayed message keeps its actor alive until it has fired.
    while (scheduler_.run() + scheduler_.trigger_timeouts() > 0)
      ; // nop
  }

  [[nodiscard]] caf::actor_system& system() noexcept {
    return system_;
  }

  /// Spawns `fun` and runs until it has a behavior.
  template <class Function, class... Arguments>
  auto spawn(Function fun, Arguments... args) {
    auto handle = system_.spawn(fun, std::move(args)...);
    actors_.push_back(caf::actor_cast<caf::strong_actor_ptr>(handle));
    scheduler_.run();
    return handle;
  }

  /// Spawns `fun` and lets it make its behavior; nobody else runs.
  template <class Function, class... Arguments>
  auto launch(Function fun, Arguments... args) {
    auto handle = system_.spawn(fun, std::move(args)...);
    actors_.push_back(caf::actor_cast<caf::strong_actor_ptr>(handle));
    step(ready() - 1);
    return handle;
  }

  /// Ends an actor before anybody else does anything.
  template <class Handle>
  void kill_at_once(const Handle& actor) {
    end_at_once(actor, caf::exit_reason::kill);
  }

  /// The same; its monitors hear `why`.
  template <class Handle>
  void end_at_once(const Handle& actor, caf::exit_reason why) {
    caf::anon_send_exit(actor, why);
    while (scheduler_.prioritize(actor))
      scheduler_.run_once();
  }

  /// Spawns a device whose copy threads wake it through this object.
  [[nodiscard]] device_actor spawn_device(device_config config) {
    config.on_wake = [box = box_, index = devices_.size()] { box->put(index); };
    auto handle = spawn(device, std::move(config));
    devices_.push_back(handle);
    return handle;
  }

  /// Puts a message into a mailbox; nobody runs yet.
  template <class Handle, class Message>
  void send(const Handle& to, Message message) {
    caf::anon_send(to, std::move(message));
  }

  /// The same, as if `from` had sent it.
  template <class From, class Handle, class Message>
  void send_as(const From& from, const Handle& to, Message message) {
    caf::send_as(from, to, std::move(message));
  }

  template <class Handle>
  void kill(const Handle& actor) {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
    run();
  }

  // -- running
  // -----------------------------------------------------------------

  /// Runs ready actors, and devices that copy threads woke, until no message
  /// is left. Copies may still be going on.
  void run() {
    do {
      scheduler_.run();
    } while (deliver_wakes());
  }

  /// Runs until `done()`, waiting for copy threads where only they can help.
  /// @returns false if nothing happened for very long.
  [[nodiscard]] bool run_until(const std::function<bool()>& done) {
    for (;;) {
      run();
      if (done())
        return true;
      if (!box_->wait(std::chrono::seconds{20}))
        return false;
    }
  }

  /// Number of actors that have mail.
  [[nodiscard]] std::size_t ready() const {
    return scheduler_.jobs.size();
  }

  /// An actor that has mail.
  /// @pre `index < ready()`
  [[nodiscard]] caf::scheduled_actor& ready_actor(std::size_t index) const {
    return dynamic_cast<caf::scheduled_actor&>(*scheduler_.jobs[index]);
  }

  /// Lets one actor handle one message: the free choice of who runs next.
  /// @pre `index < ready()`
  void step(std::size_t index) {
    const auto first = scheduler_.jobs.begin();
    const auto chosen = first + static_cast<std::ptrdiff_t>(index);
    std::rotate(first, chosen, chosen + 1);
    scheduler_.run_once();
  }

  /// Puts the wakes of copy threads into mailboxes.
  /// @returns false if there were none.
  bool deliver_wakes() {
    const auto woken = box_->take();
    for (const auto index : woken)
      send(devices_[index], msg::device_woke{});
    return !woken.empty();
  }

  // -- time
  // --------------------------------------------------------------------

  /// Moves the clock and puts what becomes due into mailboxes; nobody runs.
  void pass(std::chrono::nanoseconds delta) {
    scheduler_.advance_time(delta);
  }

  /// The time on the clock. To set it fires nothing.
  [[nodiscard]] caf::actor_clock::time_point& now() {
    return scheduler_.clock().current_time;
  }

  /// Moves the clock, fires what becomes due, and runs.
  void advance(std::chrono::nanoseconds delta) {
    scheduler_.advance_time(delta);
    run();
  }

  /// Is any delayed message under way?
  [[nodiscard]] bool timers_pending() const {
    return scheduler_.has_pending_timeout();
  }

private:
  struct config_type : caf::actor_system_config {
    config_type() {
      register_messages(*this);
      set("scheduler.policy", caf::atom("testing"));
      set("logger.verbosity", caf::atom("quiet"));
    }
  };

  config_type config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  std::shared_ptr<wake_box> box_ = std::make_shared<wake_box>();
  std::vector<caf::strong_actor_ptr> actors_;
  std::vector<device_actor> devices_;
};

/// The state of a living actor, to look into.
template <class State, class Handle>
[[nodiscard]] State& state_of(const Handle& actor) {
  using type
    = std::remove_pointer_t<typename Handle::template stateful_pointer<State>>;
  return dynamic_cast<type&>(*caf::actor_cast<caf::abstract_actor*>(actor))
    .state;
}

} // namespace kvtide::test
