// SPDX-License-Identifier: Apache-2.0

#include "actors/directory_desk.hpp"

#include "actors/log.hpp"
#include "actors/printable.hpp"
#include "messages/digest_bytes.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace kvtide {

namespace {

constexpr std::size_t longest_name = 255;

std::string other_version(std::uint32_t theirs) {
  return "the directory speaks protocol "
       + std::to_string(msg::protocol_version) + ", the peer "
       + std::to_string(theirs)
       + ": install the same version of kvtide on both sides";
}

} // namespace

// -- message handlers ---------------------------------------------------------

void directory_desk_state::enroll(const msg::enroll& x) {
  const auto is_new = find(self->current_sender()->address()) == speakers.end();
  auto refused = seat(x);
  if (refused.empty() && is_new)
    log().info("directory: replica \"{}\" takes part", printable(x.replica));
  else if (!refused.empty())
    log().warn("directory: a replica was refused: {}", printable(refused));
  self->send(sender(), msg::enrolled{x.incarnation, std::move(refused)});
}

void directory_desk_state::withdraw(const msg::withdraw&) {
  const auto at = find(self->current_sender()->address());
  if (at != speakers.end())
    drop(at, "left");
}

void directory_desk_state::publish(const msg::publish& x) {
  self->send(sender(), take(x));
}

void directory_desk_state::ask(const msg::ask_replicas& x) {
  self->send(sender(), answer(x));
}

void directory_desk_state::on_down(const caf::actor_addr& who) {
  if (const auto at = find(who); at != speakers.end())
    drop(at, "is gone");
}

// -- helpers ------------------------------------------------------------------

std::string directory_desk_state::seat(const msg::enroll& x) {
  using welcome = core::replica_directory::welcome;
  if (x.protocol != msg::protocol_version)
    return other_version(x.protocol);
  if (x.replica.empty() || x.replica.size() > longest_name)
    return "the name of a replica has 1 to 255 bytes";
  const auto who = self->current_sender()->address();
  auto id = core::replica_directory::seat_id{};
  switch (replicas.join(x.replica, x.incarnation, id)) {
    case welcome::older:
      return "a later life of \"" + x.replica
           + "\" takes part: end one of them, or give it another name";
    case welcome::full:
      return "there is no room for \"" + x.replica + "\" beside "
           + std::to_string(core::replica_directory::max_replicas)
           + " replicas";
    case welcome::seated:
      break;
  }
  const auto old = find(who);
  if (old != speakers.end() && old->seat != id)
    drop(old, "has another name now");
  std::erase_if(speakers, [&](const speaker& one) {
    if (one.seat != id || one.who == who)
      return false;
    self->demonitor(one.who);
    return true;
  });
  if (find(who) == speakers.end()) {
    self->monitor(who);
    speakers.push_back({who, id});
  }
  return {};
}

std::vector<directory_desk_state::speaker>::iterator
directory_desk_state::find(const caf::actor_addr& who) {
  return std::find_if(speakers.begin(), speakers.end(),
                      [&](const speaker& one) { return one.who == who; });
}

void directory_desk_state::drop(std::vector<speaker>::iterator at,
                                const char* why) {
  log().info("directory: replica \"{}\" {}",
             printable(replicas.name_of(at->seat)), why);
  replicas.leave(at->seat);
  self->demonitor(at->who);
  speakers.erase(at);
}

msg::published directory_desk_state::take(const msg::publish& x) {
  using verdict = core::replica_directory::verdict;
  auto out = msg::published{x.incarnation, x.sequence, false, false};
  const auto at = find(self->current_sender()->address());
  if (at == speakers.end()) {
    out.unknown = true;
    return out;
  }
  const auto removed = digests_of(x.removed);
  const auto stored = digests_of(x.stored);
  if (!removed || !stored
      || removed->size() + stored->size() > most_published_keys) {
    log().warn("directory: replica \"{}\" sends what cannot be read",
               printable(replicas.name_of(at->seat)));
    out.start_over = true;
    return out;
  }
  const auto batch = core::replica_directory::batch{x.sequence, x.starts_over,
                                                    x.more, *removed, *stored};
  switch (replicas.apply(at->seat, x.incarnation, batch)) {
    case verdict::older:
      out.unknown = true;
      break;
    case verdict::gap:
      out.start_over = true;
      break;
    case verdict::applied:
    case verdict::repeated:
      out.start_over = replicas.could_be_whole(at->seat);
  }
  return out;
}

msg::replicas_found directory_desk_state::answer(const msg::ask_replicas& x) {
  auto out = msg::replicas_found{};
  out.ticket = x.ticket;
  if (x.protocol != msg::protocol_version) {
    out.refused = other_version(x.protocol);
    return out;
  }
  auto runs = std::vector<core::chunk_run>{};
  auto keys = std::size_t{0};
  for (const auto& run : x.runs) {
    auto digests = digests_of(run.digests);
    keys += digests ? digests->size() : 0;
    if (!digests || run.chunk_tokens < 1 || run.chunk_tokens > max_tokens
        || runs.size() == most_asked_runs || keys > most_asked_keys) {
      out.refused = "the question cannot be read, or has too many keys";
      return out;
    }
    runs.push_back({run.chunk_tokens, std::move(*digests)});
  }
  const auto all = replicas.holdings(runs);
  if (const auto best = replicas.choose(all))
    out.best = replicas.name_of(best->seat);
  for (const auto& one : all)
    out.all.push_back({replicas.name_of(one.seat), one.tokens, one.chunks,
                       replicas.is_whole(one.seat)});
  return out;
}

directory_user_port directory_desk_state::sender() const {
  return caf::actor_cast<directory_user_port>(self->current_sender());
}

// -- behavior -----------------------------------------------------------------

directory_actor::behavior_type
directory_desk(directory_actor::stateful_pointer<directory_desk_state> self,
               core::replica_directory::config config) {
  using state = directory_desk_state;
  auto& st = self->state;
  st.self = self;
  st.replicas = core::replica_directory{config};
  // A peer that says something else has dialed the wrong port.
  self->set_default_handler(caf::drop);
  self->set_down_handler(
    [&st](const caf::down_msg& down) { st.on_down(down.source); });
  return {
    [&st](const msg::enroll& x) { st.heard(x, &state::enroll); },
    [&st](const msg::withdraw& x) { st.heard(x, &state::withdraw); },
    [&st](const msg::publish& x) { st.heard(x, &state::publish); },
    [&st](const msg::ask_replicas& x) { st.heard(x, &state::ask); },
  };
}

} // namespace kvtide
