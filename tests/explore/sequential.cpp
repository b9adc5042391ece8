// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/sequential.hpp"

#include "actors/cache_manager.hpp"
#include "actors/scheduler.hpp"
#include "tests/explore/describe.hpp"
#include "tests/support/listen.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <map>
#include <type_traits>

namespace kvtide::explore {

namespace {

struct part_state {
  static inline const char* name = "sequential-part";
};

using lines = std::vector<std::string>;

engine_actor::behavior_type hear_all(engine_actor::stateful_pointer<part_state>,
                                     lines* heard, const text_book* texts) {
  return test::listen<engine_actor>([=](const auto& x) {
    if constexpr (std::is_constructible_v<engine_event, decltype(x)>)
      heard->push_back(describe(x, *texts));
  });
}

caf::behavior stand_in(caf::event_based_actor*, lines* plans,
                       const text_book* texts) {
  return {
    [=](const msg::begin_step& x) { plans->push_back(describe(x, *texts)); },
    [=](const msg::stores& x) { plans->push_back(describe(x, *texts)); },
    [](const msg::report_again&) {},
    [](const msg::seat&) {},
    [](const msg::pause&) {},
  };
}

/// Says where two lists differ.
void compare(const lines& there, const lines& here, const std::string& who,
             findings& found) {
  // What an unfinished run still owes is no difference.
  const auto common = std::min(there.size(), here.size());
  for (std::size_t i = 0; i < common; ++i)
    if (there[i] != here[i])
      return found.report("S1", who + ": '" + there[i]
                                  + "' in this order, but '" + here[i]
                                  + "' if each call is over before the next");
  if (there.size() != here.size())
    found.report("S1", who + ": " + std::to_string(there.size())
                         + " answers in this order, but "
                         + std::to_string(here.size())
                         + " if each call is over before the next");
}

} // namespace

void check_sequential(const scenario& what, const world& seen,
                      findings& found) {
  auto heard = lines{};
  auto plans = std::vector<lines>(what.opts.ranks);
  auto workers = std::map<rank_life, caf::actor>{};
  auto devices = workers;
  {
    auto here = test::actor_world{};
    const auto shape = std::make_shared<const core::layout>(
      core::make_layout(what.opts).value());
    auto port = here.spawn(hear_all, &heard, &seen.texts());
    auto cache
      = here.spawn(cache_manager, cache_manager_config{shape, what.opts});
    auto uut = here.spawn(scheduler, scheduler_config{shape, what.opts, {}},
                          cache, port);
    for (const auto& input : seen.past().inputs) {
      here.now() = input.when;
      if (input.worker_died) {
        here.kill(workers[*input.worker_died]);
      } else if (input.device_died) {
        here.kill(devices[*input.device_died]);
      } else if (input.joins) {
        auto* sent = &plans[input.joins->rank];
        auto& worker = workers[*input.joins];
        auto& device = devices[*input.joins];
        if (!worker) { // Else it registers again.
          worker = here.spawn(stand_in, sent, &seen.texts());
          device = here.spawn(stand_in, sent, &seen.texts());
        }
        auto ready = input.content.get_as<msg::worker_ready>(0);
        if (!ready.remote)
          ready.device = caf::actor_cast<caf::strong_actor_ptr>(device);
        here.send_as(worker, caf::actor_cast<caf::actor>(uut), ready);
      } else {
        // Only whoever joined last speaks for a rank.
        const auto speaker
          = input.from
            ? caf::actor_cast<caf::strong_actor_ptr>(workers[*input.from])
            : caf::strong_actor_ptr{};
        caf::actor_cast<caf::strong_actor_ptr>(uut)->enqueue(
          speaker, caf::make_message_id(), input.content, nullptr);
      }
      here.run();
    }
    // No handle may outlive the actor system.
    port = nullptr;
    cache = nullptr;
    uut = nullptr;
    workers.clear();
    devices.clear();
  }
  compare(seen.past().heard, heard, "the engine", found);
  if (what.opts.delivery == plan_delivery::direct)
    for (rank_id r = 0; r < what.opts.ranks; ++r)
      if (!seen.has_died(r)) // Else some plans never arrived.
        compare(seen.plans(r), plans[r], "rank " + std::to_string(r), found);
}

} // namespace kvtide::explore
