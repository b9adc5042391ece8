// SPDX-License-Identifier: Apache-2.0

#include "actors/no_cache.hpp"

#include "actors/order_checks.hpp"
#include "core/call_faults.hpp"
#include "gpu/geometry.hpp"

#include <utility>

namespace kvtide {

// -- engine -------------------------------------------------------------------

no_cache::no_cache(const options& opts, std::shared_ptr<engine_queue> queue,
                   std::shared_ptr<const one_caller> caller)
  : device_(opts.device), queue_(std::move(queue)), caller_(std::move(caller)),
    order_(make_order_log("runtime without a cache", opts.order_checks, {})) {
  // nop
}

void no_cache::answer(const msg::add& x) {
  auto fault = stopping_ ? core::too_late_to_add() : core::fault_of(x.call);
  if (fault.code != ec::none)
    fail(x.ticket, x.call.request, std::move(fault));
}

void no_cache::answer(const msg::lookup& x) {
  auto out = lookup_answer{x.ticket, {}};
  out.hits.reserve(x.rows.size());
  for (const auto& row : x.rows) {
    if (auto fault = core::fault_of(row); fault.code != ec::none)
      return fail(x.ticket, row.request, std::move(fault));
    out.hits.push_back({row.request, false, 0, 0});
  }
  counters_.lookups += x.rows.size();
  queue_->push(std::move(out));
}

void no_cache::answer(const msg::decline& x) {
  fail(x.ticket, 0, core::unknown_promise(x.promise));
}

void no_cache::answer(const msg::allocate& x) {
  // Else its engine would wait for the end of a load that never began.
  if (x.call.external != 0 && asleep_)
    fail(x.ticket, x.call.request, core::is_asleep("loads"));
  else if (x.call.external != 0)
    fail(x.ticket, x.call.request, core::bad_load(x.call.request, 0));
}

void no_cache::answer(const msg::step& x) {
  const auto step = x.call.step;
  if (last_step_)
    if (auto fault = core::fault_of_step(step, *last_step_);
        fault.code != ec::none)
      return fail(x.ticket, 0, std::move(fault));
  if (asleep_)
    return fail(x.ticket, 0, core::is_asleep("computes"));
  last_step_ = step;
  counters_.steps += 1;
  auto out = step_plan{};
  out.ticket = x.ticket;
  out.step = step;
  queue_->push(std::move(out));
}

void no_cache::answer(const msg::finish& x) {
  if (auto fault = core::fault_of(x.call); fault.code != ec::none)
    return fail(x.ticket, x.call.request, std::move(fault));
  queue_->push(finish_answer{x.ticket, x.call.request, {}});
}

void no_cache::answer(const msg::reset& x) {
  counters_.resets += 1;
  queue_->push(call_done{x.ticket, {}});
}

void no_cache::answer(const msg::get_stats& x) {
  auto out = counters_;
  out.order_errors = order_.total();
  out.order_errors_by_rule = order_.counts();
  add_refused(out, caller_.get());
  queue_->push(stats_answer{x.ticket, out});
}

void no_cache::answer(const msg::take_events& x) {
  queue_->push(events_answer{x.ticket, {}});
}

void no_cache::answer(const msg::shutdown& x) {
  if (std::exchange(stopping_, true))
    return fail(x.ticket, 0, core::stopping_already());
  queue_->push(call_done{x.ticket, {}});
}

void no_cache::answer(const msg::advance& x) {
  if (auto fault = core::fault_of_advance(device_, now_, x.now);
      fault.code != ec::none)
    return fail(x.ticket, 0, std::move(fault));
  now_ = x.now;
  queue_->push(call_done{x.ticket, {}});
}

void no_cache::answer(const msg::sleep& x) {
  if (std::exchange(asleep_, true))
    return fail(x.ticket, 0, core::asleep_already());
  queue_->push(call_done{x.ticket, {}});
}

void no_cache::answer(const msg::wake& x) {
  if (!std::exchange(asleep_, false))
    return fail(x.ticket, 0, core::not_asleep());
  queue_->push(call_done{x.ticket, {}});
}

void no_cache::answer(const msg::explain& x) {
  auto out = explain_answer{};
  out.ticket = x.ticket;
  out.request = x.request;
  core::conclude({}, miss_reason::offloading_off, {}, out);
  queue_->push(std::move(out));
}

void no_cache::fail(ticket_id ticket, request_id id, error reason) {
  order_.breach(core::order_rule::call, "a call had no effect", reason.text);
  queue_->push(call_failed{ticket, id, std::move(reason)});
}

// -- rank ---------------------------------------------------------------------

no_cache_rank::no_cache_rank(rank_id id, const options& opts,
                             std::shared_ptr<rank_queue> queue,
                             std::shared_ptr<const one_caller> caller)
  : id_(id), groups_(static_cast<std::uint32_t>(opts.groups.size())),
    blocks_per_chunk_(static_cast<std::uint32_t>(opts.blocks_per_chunk)),
    model_fingerprint_(opts.model_fingerprint), queue_(std::move(queue)),
    caller_(std::move(caller)) {
  // nop
}

void no_cache_rank::answer(const msg::register_kv& x) {
  if (auto fault = core::fault_of(x.memory, id_, model_fingerprint_);
      fault.code != ec::none)
    return queue_->push(kv_registered{id_, 0, 0, std::move(fault), {}});
  const auto shape = gpu::make_geometry(x.memory, groups_, blocks_per_chunk_,
                                        gpu::memory_domain::any);
  if (!shape)
    return queue_->push(kv_registered{id_, 0, 0, shape.failure(), {}});
  queue_->push(kv_registered{id_, 0, shape.value().slot_bytes(), {}, {}});
}

void no_cache_rank::answer(const msg::unregister_kv&) {
  queue_->push(kv_unregistered{id_});
}

void no_cache_rank::answer(const msg::await_step& x) {
  queue_->push(step_ready{id_, x.step, {}});
}

void no_cache_rank::answer(const msg::get_rank_stats&) {
  auto out = rank_stats{};
  out.rank = id_;
  add_refused(out, caller_.get());
  queue_->push(out);
}

} // namespace kvtide
