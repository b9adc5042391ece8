// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/driver_engine.hpp"

#include "kvtide/error.hpp"

#include <string>
#include <utility>

namespace kvtide::conformance {

namespace {

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

struct description {
  std::string operator()(const lookup_answer& x) const {
    return "lookup_answer to ticket " + number(x.ticket);
  }

  std::string operator()(const step_plan& x) const {
    return "step_plan of step " + number(x.step);
  }

  std::string operator()(const finish_answer& x) const {
    return "finish_answer to ticket " + number(x.ticket);
  }

  std::string operator()(const stats_answer& x) const {
    return "stats_answer to ticket " + number(x.ticket);
  }

  std::string operator()(const events_answer& x) const {
    return "events_answer to ticket " + number(x.ticket);
  }

  std::string operator()(const msg::snapshot_answer& x) const {
    return "snapshot_answer to ticket " + number(x.ticket);
  }

  std::string operator()(const call_done& x) const {
    return "call_done to ticket " + number(x.ticket);
  }

  std::string operator()(const call_failed& x) const {
    return std::string{"call_failed ("} + to_string(x.reason.code)
         + "): " + x.reason.text;
  }

  std::string operator()(const load_done& x) const {
    return "load_done of job " + number(x.job);
  }

  std::string operator()(const load_failed& x) const {
    return "load_failed of job " + number(x.job);
  }

  std::string operator()(const blocks_released& x) const {
    return "blocks_released of request " + number(x.request);
  }

  std::string operator()(const rank_lost& x) const {
    return "rank_lost of rank " + number(x.rank);
  }

  std::string operator()(const rank_back& x) const {
    return "rank_back of rank " + number(x.rank);
  }

  std::string operator()(const overload& x) const {
    return "overload with " + number(x.jobs_in_flight) + " jobs";
  }

  std::string operator()(const cache_lost&) const {
    return "cache_lost";
  }
};

} // namespace

engine_actor::behavior_type
driver_engine(engine_actor::stateful_pointer<driver_engine_state>,
              std::shared_ptr<engine_log> log) {
  return {
    [log](lookup_answer& x) { log->add(std::move(x)); },
    [log](step_plan& x) { log->add(std::move(x)); },
    [log](finish_answer& x) { log->add(std::move(x)); },
    [log](stats_answer& x) { log->add(std::move(x)); },
    [log](events_answer& x) { log->add(std::move(x)); },
    [log](msg::snapshot_answer& x) { log->add(std::move(x)); },
    [log](call_done& x) { log->add(std::move(x)); },
    [log](call_failed& x) { log->add(std::move(x)); },
    [log](load_done& x) { log->add(x); },
    [log](load_failed& x) { log->add(std::move(x)); },
    [log](blocks_released& x) { log->add(std::move(x)); },
    [log](rank_lost& x) { log->add(x); },
    [log](rank_back& x) { log->add(x); },
    [log](overload& x) { log->add(x); },
    [log](cache_lost& x) { log->add(x); },
    [](explain_answer&) {}, // No vector asks for one.
  };
}

std::string describe(const heard& event) {
  return std::visit(description{}, event);
}

} // namespace kvtide::conformance
