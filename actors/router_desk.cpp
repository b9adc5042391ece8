// SPDX-License-Identifier: Apache-2.0

#include "actors/router_desk.hpp"

#include "actors/log.hpp"
#include "messages/join_terms.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace kvtide {

// -- message handlers ---------------------------------------------------------

void router_desk_state::ask(msg::route& x) {
  auto what = question{x.ticket, x.tokens, now() + timeout.count(),
                       std::move(x.answer)};
  if (!directory)
    return fail(what, "no directory can be reached");
  if (open.size() == most_questions)
    return fail(what, "too many questions wait for the directory");
  open.push_back(std::move(what));
  self->send(directory, msg::ask_replicas{msg::protocol_version, x.ticket,
                                          std::move(x.runs)});
  arm();
}

void router_desk_state::greet(const msg::knock& x) {
  if (const auto fault = fault_of(x); fault.code != ec::none) {
    log().error("router: the directory that was reached is of no use: {}",
                fault.text);
    return;
  }
  if (directory)
    self->demonitor(directory.address());
  directory = caf::actor_cast<directory_actor>(x.door);
  self->monitor(directory);
}

void router_desk_state::found(msg::replicas_found& x) {
  const auto at
    = std::find_if(open.begin(), open.end(),
                   [&](const question& one) { return one.ticket == x.ticket; });
  if (at == open.end())
    return; // It came too late.
  const auto asked = std::move(*at);
  open.erase(at);
  auto out = replica_choice{};
  out.ticket = x.ticket;
  if (!x.refused.empty())
    out.reason = {ec::unsupported, std::move(x.refused)};
  out.all = std::move(x.all);
  if (const auto* best = chooser.choose(out.all, x.best, asked.tokens)) {
    out.replica = best->replica;
    out.tokens = best->tokens;
    out.chunks = best->chunks;
  }
  asked.answer(std::move(out));
}

void router_desk_state::woke() {
  wake_up.rang();
  for (; !open.empty() && open.front().due <= now(); open.pop_front())
    fail(open.front(), "the directory did not answer in time");
  arm();
}

void router_desk_state::on_down(const caf::actor_addr& who) {
  if (directory.address() != who)
    return;
  directory = nullptr;
  for (; !open.empty(); open.pop_front())
    fail(open.front(), "the directory is gone");
}

// -- helpers ------------------------------------------------------------------

void router_desk_state::fail(const question& what, const char* why) {
  auto out = replica_choice{};
  out.ticket = what.ticket;
  out.reason = {ec::timeout, why};
  what.answer(std::move(out));
}

void router_desk_state::arm() {
  if (open.empty())
    return;
  if (const auto wait = wake_up.set(now(), open.front().due))
    self->delayed_send(self, *wait, msg::timer{});
}

nanoseconds_t router_desk_state::now() const {
  return self->clock().now().time_since_epoch().count();
}

// -- behavior -----------------------------------------------------------------

router_actor::behavior_type
router_desk(router_actor::stateful_pointer<router_desk_state> self,
            router_desk_config config) {
  auto& st = self->state;
  st.self = self;
  st.timeout = config.timeout;
  st.chooser = core::replica_chooser{config.least_share};
  // Peers may say anything.
  self->set_default_handler(caf::drop);
  self->set_down_handler(
    [&st](const caf::down_msg& down) { st.on_down(down.source); });
  return {
    [&st](msg::route& x) { st.ask(x); },
    [&st](const msg::knock& x) { st.greet(x); },
    [&st](msg::replicas_found& x) { st.found(x); },
    [&st](const msg::timer&) { st.woke(); },
  };
}

} // namespace kvtide
