// SPDX-License-Identifier: Apache-2.0

/// @file
/// Every fault once: small scenarios take their plain course but for one fault,
/// at each place where it can happen. No request reads a wrong byte, so that
/// its result is what it was; every other one comes to the same end; afterwards
/// nothing is left over, and the runtime still stores and finds.

#include "tests/explore/run.hpp"
#include "tests/explore/scenario_param.hpp"
#include "tests/explore/world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using ::testing::UnorderedElementsAre;

namespace kvtide::explore {

namespace {

// -- scenarios ----------------------------------------------------------------

scenario small(const char* name, std::uint32_t requests) {
  auto out = *find_scenario(name);
  out.requests = requests;
  out.aborts = out.resets = out.edits = out.preemptions = 0;
  out.copy_failures = out.deadlines = out.rank_deaths = 0;
  out.may_lose = true;
  return out;
}

std::vector<scenario> small_scenarios() {
  auto last = small("no_later_step", 2);
  last.async = false;
  return {small("plain", 3),     small("two_ranks", 2),
          small("window", 2),    small("tiny_device", 3),
          small("by_engine", 2), small("async_preemption", 3),
          small("tiny_pool", 3), last};
}

// -- runs ---------------------------------------------------------------------

constexpr auto at_no_place = std::numeric_limits<std::size_t>::max();

/// Takes the plain course, but makes one choice of a kind: the n-th time that
/// it is open.
class fault_chooser : public chooser {
public:
  fault_chooser(choice_kind kind, std::size_t number)
    : kind_(kind), number_(number) {
    // nop
  }

  std::size_t pick(const std::vector<choice>& open) override {
    for (std::size_t i = 0; i < open.size(); ++i)
      if (open[i].kind == kind_ && places_++ == number_)
        return i;
    return 0;
  }

  /// How often it was open.
  [[nodiscard]] std::size_t places() const noexcept {
    return places_;
  }

private:
  choice_kind kind_;
  std::size_t number_;
  std::size_t places_ = 0;
};

class EveryFaultOnce : public ::testing::TestWithParam<scenario> {
protected:
  void SetUp() override {
    auto plain = scripted_chooser{{}};
    auto seen = world{GetParam(), plain, false};
    // What comes after the scenario, to look at what is left, does not count.
    seen.run([this](world&, std::size_t event) { events_ = event + 1; });
    ASSERT_FALSE(seen.found()) << seen.found()->text;
    reports_ = seen.reports();
    allocations_ = seen.allocations();
    endings_ = seen.engine().endings();
    ASSERT_EQ(endings_.size(), GetParam().requests);
  }

  void TearDown() override {
    if (HasFailure())
      return;
    EXPECT_GT(cases_, 0u) << "the fault never happened";
    std::cout << "faults: " << cases_ << " cases\n";
    RecordProperty("cases", std::to_string(cases_));
  }

  /// One run with a fault.
  /// @param spared whose result may differ
  void expect_unharmed(const scenario& what, chooser& next,
                       const std::string& fault,
                       std::optional<request_id> spared = {},
                       const interference& before = {},
                       const std::function<void(world&)>& prepare = {}) {
    ++cases_;
    auto seen = world{what, next, std::getenv("KVTIDE_TRACE") != nullptr};
    if (prepare)
      prepare(seen);
    seen.run(before);
    if (seen.found()) {
      ADD_FAILURE() << fault << ": " << seen.found()->rule << ": "
                    << seen.found()->text;
      for (const auto& line : seen.past().trace)
        std::cout << "  | " << line << '\n';
      return;
    }
    for (const auto& [id, tokens] : endings_)
      if (id != spared) {
        EXPECT_EQ(seen.engine().endings().at(id), tokens)
          << fault << ": request " << id;
      }
  }

  void expect_unharmed_at_each_choice(const scenario& what, choice_kind kind,
                                      const std::string& fault) {
    auto counting = fault_chooser{kind, at_no_place};
    auto seen = world{what, counting, false};
    seen.run();
    ASSERT_GT(counting.places(), 0u) << "the fault is nowhere possible";
    for (std::size_t i = 0; i < counting.places() && !HasFailure(); ++i) {
      auto next = fault_chooser{kind, i};
      expect_unharmed(what, next, fault + " " + std::to_string(i));
    }
  }

  /// `act` happens before each event in turn, once per run.
  /// @param act returns false if there was nothing that it could do
  void expect_unharmed_at_each_event(const std::string& fault,
                                     const std::function<bool(world&)>& act,
                                     std::optional<request_id> spared = {}) {
    for (std::size_t i = 0; i < events_ && !HasFailure(); ++i) {
      auto next = scripted_chooser{{}};
      auto tried = false;
      auto acted = false;
      expect_unharmed(GetParam(), next,
                      fault + " before event " + std::to_string(i), spared,
                      [&](world& seen, std::size_t event) {
                        if (event >= i && !std::exchange(tried, true))
                          acted = act(seen);
                      });
      if (!acted)
        --cases_; // That was the plain course.
    }
  }

  /// Places for a fault: before each event, and after the last.
  std::size_t events_ = 0;
  std::size_t reports_ = 0;
  std::vector<std::size_t> allocations_;
  std::map<request_id, token_count> endings_;
  std::size_t cases_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Scenarios, EveryFaultOnce,
                         ::testing::ValuesIn(small_scenarios()), name_of);

// -- copies and time ----------------------------------------------------------

TEST_P(EveryFaultOnce, each_copy_fails_in_turn) {
  auto what = GetParam();
  what.copy_failures = 1;
  expect_unharmed_at_each_choice(what, choice_kind::copy_failure, "failure");
}

TEST_P(EveryFaultOnce, each_deadline_passes_at_each_point) {
  auto what = GetParam();
  what.deadlines = 1;
  expect_unharmed_at_each_choice(what, choice_kind::deadline, "deadline");
}

TEST_P(EveryFaultOnce, the_idle_delay_passes_at_each_point) {
  expect_unharmed_at_each_choice(GetParam(), choice_kind::idle_time, "delay");
}

// -- reports ------------------------------------------------------------------

TEST_P(EveryFaultOnce, each_report_is_lost_repeated_and_late) {
  using fault = world::report_fault;
  for (auto kind : {fault::lost, fault::twice, fault::late})
    for (std::size_t i = 0; i < reports_ && !HasFailure(); ++i) {
      auto next = scripted_chooser{{}};
      expect_unharmed(GetParam(), next,
                      "report " + std::to_string(i) + " fault "
                        + std::to_string(static_cast<int>(kind)),
                      {}, {},
                      [&](world& seen) { seen.plan_report_fault(i, kind); });
    }
}

// -- deaths -------------------------------------------------------------------

TEST_P(EveryFaultOnce, each_rank_dies_at_each_point) {
  auto what = GetParam();
  what.rank_deaths = 1;
  expect_unharmed_at_each_choice(what, choice_kind::rank_death, "death");
}

TEST_P(EveryFaultOnce, each_actor_dies_at_each_message) {
  auto killed = std::set<std::string>{};
  expect_unharmed_at_each_event("death", [&](world& seen) {
    const auto name = seen.kill_next_actor();
    return !name.empty() && (killed.insert(name), true);
  });
  EXPECT_THAT(killed, UnorderedElementsAre("request", "cache-manager",
                                           "gpu-worker", "device"));
}

TEST_P(EveryFaultOnce, the_scheduler_dies_at_each_message) {
  for (std::size_t i = 0; i < events_ && !HasFailure(); ++i) {
    auto next = scripted_chooser{{}};
    auto seen = world{GetParam(), next, false};
    ++cases_;
    seen.run_until_scheduler_dies(i);
    // Copies end, workers and devices go, and no byte was wrong.
    EXPECT_TRUE(seen.all_ranks_gone()) << "before event " << i;
    EXPECT_FALSE(seen.found()) << seen.found()->text;
  }
}

// -- memory -------------------------------------------------------------------

TEST_P(EveryFaultOnce, each_host_allocation_is_refused) {
  ASSERT_FALSE(allocations_.empty());
  for (std::size_t i = 0; i < allocations_.size(); ++i)
    for (std::size_t left = 0; left < allocations_[i] && !HasFailure();
         ++left) {
      auto next = scripted_chooser{{}};
      expect_unharmed(
        GetParam(), next,
        "question " + std::to_string(i) + " gets no more than "
          + std::to_string(left) + " slots",
        {},
        [&](world& seen, std::size_t) {
          if (seen.allocations().size() > i) {
            EXPECT_LE(seen.allocations()[i], left);
          }
        },
        [&](world& seen) { seen.plan_refusal(i, left); });
    }
}

TEST_P(EveryFaultOnce, the_host_pool_is_of_each_small_size) {
  for (std::uint64_t slots = 1; slots <= 14 && !HasFailure(); ++slots) {
    auto what = GetParam();
    what.slots = slots;
    auto next = scripted_chooser{{}};
    expect_unharmed(what, next, std::to_string(slots) + " slots");
  }
}

// -- calls --------------------------------------------------------------------

TEST_P(EveryFaultOnce, a_reset_comes_at_each_point) {
  expect_unharmed_at_each_event("reset", [](world& seen) {
    seen.engine().call_reset();
    return true;
  });
}

TEST_P(EveryFaultOnce, two_resets_come_at_each_point) {
  expect_unharmed_at_each_event("two resets", [](world& seen) {
    seen.engine().call_reset();
    seen.engine().call_reset();
    return true;
  });
}

TEST_P(EveryFaultOnce, a_second_reset_follows_the_first) {
  for (std::size_t i = 0; i < events_ && !HasFailure(); ++i) {
    auto next = scripted_chooser{{}};
    auto left = 2;
    auto due = i;
    expect_unharmed(GetParam(), next, "resets from event " + std::to_string(i),
                    {}, [&](world& seen, std::size_t event) {
                      if (left == 0 || event < due)
                        return;
                      --left;
                      due = event + 9;
                      seen.engine().call_reset();
                    });
    if (left > 0)
      --cases_; // The run was over before the second one.
  }
}

TEST_P(EveryFaultOnce, each_request_is_aborted_in_each_state) {
  for (request_id id = 1; id <= GetParam().requests; ++id)
    expect_unharmed_at_each_event(
      "abort of request " + std::to_string(id),
      [id](world& seen) { return seen.engine().abort(id); }, id);
}

TEST(EveryFaultOnceScenarios, ReachEveryStateOfARequest) {
  auto states = std::set<std::string>{};
  for (const auto& what : small_scenarios()) {
    auto next = scripted_chooser{{}};
    auto seen = world{what, next, false};
    seen.run([&](world& now, std::size_t) {
      for (auto id : now.engine().alive())
        states.insert(now.engine().state_of(id));
    });
  }
  for (const auto* state : {"waiting", "asked", "loading", "ready", "running"})
    EXPECT_EQ(states.count(state), 1u) << state;
}

} // namespace
} // namespace kvtide::explore
