// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/stage.hpp"

#include "messages/all.hpp"
#include "tests/support/message_name.hpp"

#include <caf/actor_registry.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/monitorable_actor.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace kvtide::conformance {

namespace {

/// "cache-manager" to "cache_manager".
std::string kind_of(const caf::abstract_actor& actor) {
  const auto* local = dynamic_cast<const caf::monitorable_actor*>(&actor);
  auto name = std::string{local != nullptr ? local->name() : "?"};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

} // namespace

struct stage::impl {
  explicit impl(stage::config options) : cfg(std::move(options)) {
    system_config.set("scheduler.policy", caf::atom("testing"));
    system_config.set("logger.file-verbosity", caf::atom("quiet"));
    register_messages(system_config);
    system = std::make_unique<caf::actor_system>(system_config);
    // Actors that a fault keeps alive shall not keep this program from ending.
    system->await_actors_before_shutdown(false);
    coordinator
      = dynamic_cast<caf::scheduler::test_coordinator*>(&system->scheduler());
    // Zero means "no time".
    coordinator->clock().current_time += std::chrono::hours{1};
  }

  /// The next message of the actor whose turn it is; null if it is only to be
  /// started or ended.
  caf::mailbox_element* next_message(caf::scheduled_actor* actor) const {
    return actor != nullptr ? actor->mailbox().peek() : nullptr;
  }

  const std::string& name_of(const std::type_info& type) {
    auto& name = names[&type];
    if (name.empty())
      name = test::message_name(type);
    return name;
  }

  /// @returns false if the message goes to a stub
  bool note(caf::scheduled_actor& actor, const caf::mailbox_element& message) {
    const auto& content = message.content();
    const auto* type = content.empty() ? nullptr : content.type(0).second;
    if (type == nullptr)
      return true; // CAF's own.
    seen.insert(caf::strong_actor_ptr{actor.ctrl()});
    const auto handler = handler_name{kind_of(actor), name_of(*type)};
    ++handled[handler];
    if (cfg.on_message)
      cfg.on_message(message.sender ? kind_of(*message.sender->get()) : "-",
                     handler);
    return cfg.stub != handler;
  }

  static void drop_next(caf::scheduled_actor& actor) {
    using std::get;
    auto& queues = actor.mailbox().queue().queues();
    get<caf::scheduled_actor::normal_queue_index>(queues).take_front();
  }

  bool run() {
    for (auto left = cfg.budget; coordinator->has_job();) {
      auto* actor
        = dynamic_cast<caf::scheduled_actor*>(coordinator->jobs.front());
      if (const auto* message = next_message(actor)) {
        if (left-- == 0)
          return false;
        if (!note(*actor, *message)) {
          drop_next(*actor);
          continue;
        }
      }
      coordinator->run_once();
    }
    return true;
  }

  stage::config cfg;
  caf::actor_system_config system_config;
  std::unique_ptr<caf::actor_system> system;
  caf::scheduler::test_coordinator* coordinator = nullptr;
  /// Everybody who was spawned here or ever got a message. An actor of which
  /// others only forget the handle stays alive, so that it is found; it ends
  /// when it is told to.
  std::set<caf::strong_actor_ptr> seen;
  std::unordered_map<const std::type_info*, std::string> names;
  traffic handled;
};

stage::stage(config cfg) : impl_(std::make_unique<impl>(std::move(cfg))) {
  // nop
}

stage::~stage() {
  impl_->cfg.stub.reset();
  impl_->cfg.on_message = nullptr;
  for (const auto& actor : std::exchange(impl_->seen, {}))
    caf::anon_send_exit(caf::actor_cast<caf::actor>(actor),
                        caf::exit_reason::kill);
  (void)impl_->run();
  impl_->seen.clear();
}

caf::actor_system& stage::system() {
  return *impl_->system;
}

bool stage::run() {
  return impl_->run();
}

bool stage::advance(std::chrono::nanoseconds span) {
  impl_->coordinator->advance_time(caf::timespan{span});
  return impl_->run();
}

std::size_t stage::actors() const {
  return impl_->system->registry().running();
}

const traffic& stage::handled() const noexcept {
  return impl_->handled;
}

void stage::keep(caf::strong_actor_ptr actor) {
  impl_->seen.insert(std::move(actor));
}

} // namespace kvtide::conformance
