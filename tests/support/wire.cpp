// SPDX-License-Identifier: Apache-2.0

#include "tests/support/wire.hpp"

#include <caf/exit_reason.hpp>
#include <caf/message_id.hpp>

#include <algorithm>

namespace kvtide::test {

wire::~wire() {
  for (const auto& [real, x] : stand_ins_)
    world_.end_at_once(x.actor, caf::exit_reason::kill);
}

std::vector<std::string> wire::under_way(side to) const {
  auto out = std::vector<std::string>{};
  for (const auto& x : queue(to))
    out.push_back(x.name);
  return out;
}

bool wire::deliver(side to, std::size_t index) {
  auto& all = queue(to);
  if (index >= all.size())
    return false;
  const auto chosen = all.begin() + static_cast<std::ptrdiff_t>(index);
  if (std::any_of(all.begin(), chosen, [chosen](const parcel& x) {
        return x.to == chosen->to && x.from == chosen->from;
      }))
    return false;
  auto moved = std::move(*chosen);
  all.erase(chosen);
  moved.to->enqueue(moved.from, caf::make_message_id(),
                    std::move(moved.content), nullptr);
  return true;
}

void wire::flow() {
  do {
    world_.run();
  } while (deliver(side::engine) || deliver(side::rank));
}

void wire::cut(side at) {
  queue(at).clear();
  for (const auto& [real, x] : stand_ins_)
    if (x.home != at)
      world_.end_at_once(x.actor, caf::exit_reason::remote_link_unreachable);
}

} // namespace kvtide::test
