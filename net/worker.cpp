// SPDX-License-Identifier: Apache-2.0

#include "actors/network.hpp"
#include "actors/rank_door.hpp"
#include "core/layout.hpp"
#include "core/worker_places.hpp"
#include "net/worker_impl.hpp"

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <cassert>
#include <string>
#include <utility>

namespace kvtide {

worker::impl::~impl() {
  opts.network->close();
  caf::anon_send_exit(link, caf::exit_reason::user_shutdown);
}

void worker::impl::start_worker(rank::impl& seat) {
  auto worker_options = worker_config_of(opts, seat.id, seat.incarnation);
  worker_options.remote = true;
  start_rank(seat, std::move(worker_options), {});
  caf::anon_send(
    link, net::link_rank{terms_of(opts, seat.id, random_life()), seat.worker});
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
  out->link = out->system->spawn(net::simple_link);
  for (const auto& one : opts.ranks)
    out->start_worker(*out->find(one));
  auto refused = shared.network->open_link(
    *out->system, caf::actor_cast<rank_link_port>(out->link), opts.scheduler);
  rank_home::forget_system();
  if (refused.code != ec::none)
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
  // The rank's own thread reads what is changed here.
  const auto inside_rank = seat->caller->enter();
  if (!inside_rank)
    return core::second_thread("rank");
  if (auto refused = impl_->prepare_restart(*seat); refused.code != ec::none)
    return refused;
  impl_->start_worker(*seat);
  return {};
}

} // namespace kvtide
