// SPDX-License-Identifier: Apache-2.0

#include "net/entrance.hpp"

#include <caf/io/abstract_broker.hpp>

#include <utility>

namespace kvtide::net {

entrance::entrance(std::shared_ptr<porter> guard, unique_fd listener,
                   std::shared_ptr<household> home,
                   connection::multiplexer& mpx)
  : doorman(caf::io::accept_handle::from_int(home->next_handle++)),
    guard_(std::move(guard)), listener_(std::move(listener)), mpx_(mpx),
    self_(self_of(listener_.get())) {
  // nop
}

void entrance::launch() {
  guard_->open_gate(
    std::move(listener_),
    [this, self = caf::intrusive_ptr<entrance>{this}](connection_ptr peer) {
      mpx_.post([self, peer = std::move(peer)]() mutable {
        self->admit(std::move(peer));
      });
    });
}

bool entrance::new_connection() {
  // The porter accepts.
  return false;
}

void entrance::graceful_shutdown() {
  const auto self = caf::intrusive_ptr<entrance>{this};
  guard_->shut_gate();
  detach(&mpx_, false);
}

void entrance::add_to_loop() {
  // nop: the porter waits for peers
}

void entrance::remove_from_loop() {
  // nop
}

std::string entrance::addr() const {
  return to_string(self_);
}

std::uint16_t entrance::port() const {
  return port_of(self_);
}

void entrance::admit(connection_ptr peer) {
  if (detached())
    return;
  const auto id = peer->hdl();
  parent()->add_scribe(std::move(peer));
  doorman::new_connection(&mpx_, id);
}

} // namespace kvtide::net
