// SPDX-License-Identifier: Apache-2.0

#include "actors/request.hpp"

#include "core/load_plan.hpp"
#include "core/store_plan.hpp"

#include <utility>

namespace kvtide {

// -- message handlers ---------------------------------------------------------

void request_state::plan_store(const msg::plan_store& x) {
  tables.apply(x.update);
  self->send(
    scheduler,
    msg::store_offer{x.turn, config.request,
                     core::plan_store(*config.shape, *config.rule,
                                      {config.prompt_tokens, x.keys, tables},
                                      x.wanted, x.next)});
}

void request_state::plan_load(const msg::plan_load& x) {
  tables.apply(x.update);
  self->send(scheduler,
             msg::load_offer{x.turn, config.request,
                             core::plan_load(*config.shape, x.keys, x.total,
                                             x.blocks, x.hashed)});
}

// -- behavior -----------------------------------------------------------------

request_actor::behavior_type
request(request_actor::stateful_pointer<request_state> self,
        request_config config, scheduler_request_port scheduler) {
  auto& st = self->state;
  st.self = self;
  st.config = std::move(config);
  st.scheduler = std::move(scheduler);
  st.tables = core::block_tables{st.config.shape->groups.size()};
  return {
    [&st](const msg::plan_store& x) { st.plan_store(x); },
    [&st](const msg::plan_load& x) { st.plan_load(x); },
    [self](const msg::retire&) { self->quit(); },
  };
}

} // namespace kvtide
