// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/run.hpp"

#include "tests/explore/sequential.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::explore {

namespace {

outcome play(const scenario& what, chooser& next, bool traced,
             const interference& before) {
  auto played = world{what, next, traced};
  played.run(before);
  const auto& how = played.past();
  const auto compared = !played.found() && !before && !how.busy_in_time;
  if (compared)
    check_sequential(what, played, played.all_findings());
  return {played.found(), how.picks,      how.fingerprint, how.trace,
          how.performed,  how.decided_at, how.counted,     compared};
}

} // namespace

outcome run(const scenario& what, chooser& next, bool traced,
            const interference& before) {
  auto out = play(what, next, traced, before);
  if (copy_way_of(what.device, 0).cuda && !out.found)
    for (const auto& left : world::leaks())
      out.found = finding{"rest", left + " was not given back"};
  return out;
}

scenario with_device_of(scenario what, std::uint64_t seed) {
  what.device = copy_way_of(what.device, seed).name;
  return what;
}

outcome run_seed(const scenario& what, std::uint64_t seed) {
  auto next = random_chooser{seed};
  return run(with_device_of(what, seed), next);
}

sweep_result
run_seeds(const scenario& what, std::uint64_t first, std::uint64_t last,
          const std::function<bool(const outcome&, std::uint64_t)>& go_on) {
  auto out = sweep_result{};
  for (out.seed = first;; ++out.seed) {
    auto seen = run_seed(what, out.seed);
    ++out.runs;
    out.compared += seen.compared;
    out.distinct.insert(seen.fingerprint);
    if (seen.found) {
      out.broken = std::move(seen);
      return out;
    }
    if (!go_on(seen, out.runs) || out.seed == last)
      return out;
  }
}

// -- shrinking ----------------------------------------------------------------

schedule shrink(const scenario& what, const schedule& picks,
                const std::string& rule, std::size_t budget,
                const interference& before) {
  // The picks that are not zero, by place.
  auto left = std::vector<std::pair<std::size_t, std::uint32_t>>{};
  for (std::size_t i = 0; i < picks.size(); ++i)
    if (picks[i] != 0)
      left.emplace_back(i, picks[i]);
  const auto made_of = [](const auto& list) {
    auto out = schedule{};
    for (const auto& [at, pick] : list) {
      out.resize(at + 1, 0);
      out[at] = pick;
    }
    return out;
  };
  const auto still_fails = [&](const auto& list) {
    if (budget == 0)
      return false;
    --budget;
    auto next = scripted_chooser{made_of(list)};
    const auto seen = run(what, next, false, before);
    return seen.found && seen.found->rule == rule;
  };
  // Delta debugging (Zeller and Hildebrandt, 2002): halves, quarters, and so
  // on are taken away; single ones until each of them is needed.
  for (auto size = left.size(); size > 0;) {
    const auto before_pass = left.size();
    for (std::size_t at = 0; at < left.size();) {
      auto fewer = left;
      const auto first = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      const auto last
        = fewer.begin()
        + static_cast<std::ptrdiff_t>(std::min(at + size, fewer.size()));
      fewer.erase(first, last);
      if (still_fails(fewer))
        left = std::move(fewer);
      else
        at += size;
    }
    if (size > 1)
      size /= 2;
    else if (left.size() == before_pass)
      size = 0;
  }
  return made_of(left);
}

// -- exhaustive search --------------------------------------------------------

namespace {

/// Follows a list, then takes the first, and remembers what was open.
class noting_chooser : public chooser {
public:
  explicit noting_chooser(schedule picks) : script_(std::move(picks)) {
    // nop
  }

  std::size_t pick(const std::vector<choice>& open) override {
    seen_.push_back(open);
    return script_.pick(open);
  }

  [[nodiscard]] const std::vector<std::vector<choice>>& seen() const noexcept {
    return seen_;
  }

private:
  scripted_chooser script_;
  std::vector<std::vector<choice>> seen_;
};

/// Events on two ranks change nothing of each other: their order is of no
/// consequence.
bool independent(const choice& x, const choice& y) {
  return x.rank != y.rank && x.rank != center && y.rank != center;
}

/// In a run that has seen `events`, `what` came some time after `from`. If all
/// events in between are independent of it, the run in which it comes first is
/// the same run.
bool comes_to_the_same(const std::vector<choice>& events, std::size_t from,
                       const choice& what) {
  for (auto at = from; at < events.size(); ++at) {
    if (events[at] == what)
      return true;
    if (!independent(events[at], what))
      return false;
  }
  return false;
}

} // namespace

search_result search_all(const scenario& what, std::size_t deviations,
                         std::size_t most_runs,
                         const std::function<bool(std::size_t)>& go_on) {
  auto out = search_result{};
  auto open = std::vector<std::pair<schedule, std::size_t>>{{{}, 0}};
  while (!open.empty()) {
    if (out.runs >= most_runs)
      return out;
    const auto [picks, spent] = std::move(open.back());
    open.pop_back();
    auto next = noting_chooser{picks};
    const auto seen = run(what, next);
    ++out.runs;
    if (seen.found) {
      out.failing = seen.picks;
      return out;
    }
    if (!go_on(out.runs))
      return out;
    if (spent == deviations)
      continue;
    const auto& decisions = next.seen();
    for (auto at = picks.size(); at < decisions.size(); ++at) {
      for (std::uint32_t i = 1; i < decisions[at].size(); ++i) {
        if (comes_to_the_same(seen.performed, seen.decided_at[at],
                              decisions[at][i])) {
          ++out.skipped;
          continue;
        }
        auto deviant = schedule(at + 1, 0);
        std::copy(picks.begin(), picks.end(), deviant.begin());
        deviant[at] = i;
        open.emplace_back(std::move(deviant), spent + 1);
      }
    }
  }
  out.complete = true;
  return out;
}

} // namespace kvtide::explore
