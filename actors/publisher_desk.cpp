// SPDX-License-Identifier: Apache-2.0

#include "actors/publisher_desk.hpp"

#include "actors/log.hpp"
#include "actors/printable.hpp"
#include "messages/digest_bytes.hpp"
#include "messages/join_terms.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <utility>

namespace kvtide {

namespace {

/// What the cache manager hears from here.
using pool_port = caf::typed_actor<caf::reacts_to<msg::get_pool_part>>;

constexpr std::uint32_t slots_per_part = 2'048;

} // namespace

// -- message handlers ---------------------------------------------------------

void publisher_desk_state::watch(const msg::watch_pool& x) {
  pool = x.pool;
  if (has_seat) {
    said.start_over();
    go();
  } else {
    enroll();
  }
}

void publisher_desk_state::changed(const msg::pool_changed& x) {
  if (x.pool != pool)
    return;
  said.add(x.changes);
  go();
}

void publisher_desk_state::part(const msg::pool_part& x) {
  if (x.pool != pool)
    return;
  said.add_part(x.first, x.next, x.last, x.digests);
  go();
}

void publisher_desk_state::gone(const msg::pool_gone& x) {
  if (x.pool != pool)
    return;
  pool = nullptr;
  said.pause();
  due = never;
  if (directory)
    self->send(directory, msg::withdraw{config.incarnation});
  has_seat = false;
}

void publisher_desk_state::greet(const msg::knock& x) {
  if (const auto fault = fault_of(x); fault.code != ec::none) {
    log().error("publisher: the directory that was reached is of no use: {}",
                fault.text);
    return;
  }
  if (directory)
    self->demonitor(directory.address());
  directory = caf::actor_cast<directory_actor>(x.door);
  self->monitor(directory);
  has_seat = false;
  unheard = false;
  enroll();
}

void publisher_desk_state::seated(const msg::enrolled& x) {
  if (x.incarnation != config.incarnation || has_seat || !pool)
    return;
  if (!x.refused.empty()) {
    if (x.refused != refused)
      log().error("publisher: the directory refuses replica \"{}\": {}",
                  config.replica, printable(x.refused));
    refused = x.refused;
    await(config.retry);
    return;
  }
  refused.clear();
  has_seat = true;
  due = never;
  said.start_over();
  go();
}

void publisher_desk_state::answered(const msg::published& x) {
  if (x.incarnation != config.incarnation || !has_seat)
    return;
  if (x.unknown) {
    enroll();
    return;
  }
  said.answered(x.sequence, x.start_over);
  due = never;
  go();
}

void publisher_desk_state::woke() {
  wake_up.rang();
  if (due <= now()) {
    if (!has_seat && refused.empty() && !std::exchange(unheard, true))
      log().warn("publisher: the directory does not answer; replica \"{}\" "
                 "asks on",
                 config.replica);
    enroll();
  } else if (due != never) {
    await(std::chrono::nanoseconds{due - now()});
  }
}

void publisher_desk_state::on_down(const caf::actor_addr& who) {
  if (directory.address() != who)
    return;
  log().warn("publisher: the directory is gone; replica \"{}\" goes on without",
             config.replica);
  directory = nullptr;
  has_seat = false;
  said.pause();
  due = never;
}

// -- helpers ------------------------------------------------------------------

void publisher_desk_state::enroll() {
  has_seat = false;
  said.pause();
  due = never;
  if (!directory || !pool)
    return;
  self->send(directory, msg::enroll{msg::protocol_version, config.replica,
                                    config.incarnation});
  await(config.patience);
}

void publisher_desk_state::go() {
  if (!has_seat)
    return;
  if (const auto first = said.wanted_part())
    if (const auto port = caf::actor_cast<pool_port>(pool))
      caf::anon_send(port, msg::get_pool_part{*first, slots_per_part});
  while (const auto batch = said.next())
    self->send(directory,
               msg::publish{config.incarnation, batch->sequence,
                            batch->starts_over, batch->more,
                            bytes_of(batch->removed), bytes_of(batch->stored)});
  if (said.waits() && due == never)
    await(config.patience);
}

void publisher_desk_state::await(std::chrono::nanoseconds span) {
  due = now() + span.count();
  if (const auto wait = wake_up.set(now(), due))
    self->delayed_send(self, *wait, msg::timer{});
}

nanoseconds_t publisher_desk_state::now() const {
  return self->clock().now().time_since_epoch().count();
}

// -- behavior -----------------------------------------------------------------

publisher_actor::behavior_type
publisher_desk(publisher_actor::stateful_pointer<publisher_desk_state> self,
               publisher_desk_config config) {
  auto& st = self->state;
  st.self = self;
  st.said = core::publication{config.sizes};
  st.config = std::move(config);
  // A peer that says something else has dialed the wrong port.
  self->set_default_handler(caf::drop);
  self->set_down_handler(
    [&st](const caf::down_msg& down) { st.on_down(down.source); });
  return {
    [&st](const msg::watch_pool& x) { st.watch(x); },
    [&st](const msg::pool_changed& x) { st.changed(x); },
    [&st](const msg::pool_part& x) { st.part(x); },
    [&st](const msg::pool_gone& x) { st.gone(x); },
    [&st](const msg::knock& x) { st.greet(x); },
    [&st](const msg::enrolled& x) { st.seated(x); },
    [&st](const msg::published& x) { st.answered(x); },
    [&st](const msg::timer&) { st.woke(); },
  };
}

} // namespace kvtide
