// SPDX-License-Identifier: Apache-2.0

#include "actors/network.hpp"
#include "actors/rank_door.hpp"
#include "core/layout.hpp"
#include "core/worker_places.hpp"
#include "messages/join_terms.hpp"
#include "net/worker_impl.hpp"

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <cassert>
#include <string>
#include <utility>

namespace kvtide {

worker::impl::~impl() {
  if (opened)
    opts.network->close();
  caf::anon_send_exit(link, caf::exit_reason::user_shutdown);
}

error worker::impl::open_link(const std::string& scheduler) {
  auto refused = opts.network->open_link(
    *system, caf::actor_cast<rank_link_port>(link), scheduler);
  forget_system();
  opened = refused.code == ec::none;
  return refused;
}

void worker::impl::start_worker(rank::impl& seat) {
  auto worker_options = worker_config_of(opts, seat.id, seat.incarnation);
  worker_options.remote = true;
  start_rank(seat, std::move(worker_options), {});
  // Another life each time: what was in the rank's memory before is gone.
  const auto life = random_life();
  caf::anon_send(
    link,
    msg::host_rank{seat.id, life, encode_terms(terms_of(opts, seat.id, life)),
                   caf::actor_cast<caf::strong_actor_ptr>(seat.worker)});
}

result<worker> worker::start(const worker_options& opts) {
  auto shared = opts.shared;
  shared.workers.clear();
  if (auto made = core::make_layout(shared); !made)
    return made.failure();
  if (auto refused = core::fault_of_hosted(shared, opts.ranks);
      refused.code != ec::none)
    return refused;
  const auto count = static_cast<std::uint32_t>(opts.ranks.size());
  if (auto refused = fault_of_machine(shared, count); refused.code != ec::none)
    return refused;
  auto out = std::make_unique<impl>(shared);
  if (auto refused = out->make_ranks(opts.ranks); refused.code != ec::none)
    return refused;
  out->start_system(shared.network.get());
  out->link = out->system->spawn(rank_link, rank_link_config{});
  for (const auto& one : opts.ranks)
    out->start_worker(*out->find(one));
  if (auto refused = out->open_link(opts.scheduler); refused.code != ec::none)
    return refused;
  return worker{std::move(out)};
}

worker::worker(std::unique_ptr<impl> ptr) noexcept : impl_(std::move(ptr)) {
  // nop
}

worker::worker(worker&&) noexcept = default;

worker& worker::operator=(worker&&) noexcept = default;

worker::~worker() = default;

rank& worker::local_rank(rank_id id) {
  assert(impl_->find(id) != nullptr && "no such rank in this process");
  return *impl_->ranks[id];
}

error worker::restart_rank(rank_id id) {
  const auto inside = impl_->caller->enter();
  if (!inside)
    return core::second_thread("worker");
  auto* seat = impl_->find(id);
  if (seat == nullptr)
    return {ec::invalid_argument,
            "rank " + std::to_string(id) + " does not live in this worker"};
  return impl_->restart(*seat);
}

} // namespace kvtide
