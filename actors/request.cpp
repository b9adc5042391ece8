// SPDX-License-Identifier: Apache-2.0

#include "actors/request.hpp"

#include <utility>

namespace kvtide {

// -- message handlers ---------------------------------------------------------

void request_state::prepare_search(msg::prepare_search& x) {
  book->apply(x.update);
  self->send(scheduler, msg::search_keys{x.turn, id, book->views()});
}

void request_state::plan_store(msg::plan_store& x) {
  book->apply(x.update);
  auto plan = book->plan_store(x.wanted, x.next);
  auto out = msg::store_offer{};
  out.turn = x.turn;
  out.offer.request = id;
  out.offer.candidates = std::move(plan.candidates);
  out.offer.keys = book->views();
  out.blocks = std::move(plan.blocks);
  out.storable = std::move(plan.storable);
  self->send(scheduler, std::move(out));
}

void request_state::plan_load(msg::plan_load& x) {
  book->apply(x.update);
  auto plan = book->plan_load(x.total, x.blocks, x.hashed);
  self->send(scheduler, msg::load_offer{x.turn, id, std::move(plan.rows),
                                        std::move(plan.first_block)});
}

void request_state::shrink(msg::shrink& x) {
  book->apply(x.update);
  book->truncate(x.tokens);
}

// -- behavior -----------------------------------------------------------------

request_actor::behavior_type
request(request_actor::stateful_pointer<request_state> self,
        request_config config, scheduler_request_port scheduler) {
  auto& st = self->state;
  st.self = self;
  st.id = config.request;
  st.scheduler = std::move(scheduler);
  st.book.emplace(std::move(config.shape), *config.rule, config.prompt_tokens);
  return {
    [&st](msg::prepare_search& x) { st.prepare_search(x); },
    [&st](msg::plan_store& x) { st.plan_store(x); },
    [&st](msg::plan_load& x) { st.plan_load(x); },
    [&st](msg::shrink& x) { st.shrink(x); },
    [self](msg::retire&) { self->quit(); },
  };
}

} // namespace kvtide
