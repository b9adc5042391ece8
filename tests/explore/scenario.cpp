// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/scenario.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kvtide::explore {

namespace {

scenario plain(std::string name, std::string about) {
  auto out = scenario{};
  out.name = std::move(name);
  out.about = std::move(about);
  out.opts.groups.front().tokens_per_block = 4;
  out.opts.blocks_per_chunk = 1;
  out.opts.tokens_per_hash = 4;
  out.opts.host_bytes = 1; // The explorer's ranks have `slots`.
  out.opts.max_deferrals = 4;
  out.opts.promise_steps = 4;
  out.opts.idle_delay = std::chrono::milliseconds{5};
  out.opts.job_deadline = std::chrono::milliseconds{50};
  return out;
}

void add_window(scenario& what, std::int32_t tokens) {
  auto& group = what.opts.groups.emplace_back();
  group.tokens_per_block = 4;
  group.sliding_window_tokens = tokens;
}

std::vector<scenario> make_all() {
  auto out = std::vector<scenario>{};

  out.push_back(plain("plain", "requests that share a prefix, one after the "
                               "other, no trouble"));

  auto& async = out.emplace_back(
    plain("async", "steps are planned before the last results are known, "
                   "fences are stream events"));
  async.async = true;
  async.stream_fences = true;
  async.alive = 4;

  auto& tiny = out.emplace_back(
    plain("tiny_device", "too few device blocks: preemption, blocks that are "
                         "reused at once, flushes"));
  tiny.blocks = 11;
  tiny.preemptions = 3;
  tiny.requests = 5;
  tiny.shared = 4;

  auto& swaps = out.emplace_back(
    plain("async_preemption", "preemption while a step is in flight, fences "
                              "are stream events"));
  swaps.blocks = 12;
  swaps.preemptions = 3;
  swaps.async = true;
  swaps.stream_fences = true;
  swaps.requests = 5;
  swaps.shared = 4;

  auto& pool = out.emplace_back(
    plain("tiny_pool", "a host pool of five slots: eviction, refusal, holds"));
  pool.slots = 5;
  pool.requests = 6;
  pool.shared = 4;
  pool.preemptions = 1;
  pool.aborts = 1;

  auto& aborts = out.emplace_back(
    plain("aborts", "clients disconnect while queued, loading, prefilling and "
                    "decoding"));
  aborts.aborts = 3;
  aborts.requests = 6;
  aborts.alive = 4;
  aborts.budget = 5;
  aborts.blocks = 16;

  auto& ranks
    = out.emplace_back(plain("two_ranks", "two ranks, each at its own pace"));
  ranks.opts.ranks = 2;
  ranks.preemptions = 1;
  ranks.blocks = 13;

  auto& four = out.emplace_back(
    plain("four_ranks", "four ranks and aborts, fences are stream events"));
  four.opts.ranks = 4;
  four.stream_fences = true;
  four.aborts = 1;
  four.requests = 3;

  auto& window = out.emplace_back(
    plain("window", "a sliding-window group beside full attention"));
  add_window(window, 6);
  window.prompt = 13;
  window.shared = 12;
  window.blocks = 22;
  window.preemptions = 1;

  auto& wide = out.emplace_back(
    plain("window_in_chunks", "a sliding window with two blocks per chunk, "
                              "asynchronous, with aborts"));
  add_window(wide, 10);
  wide.opts.blocks_per_chunk = 2;
  wide.opts.tokens_per_hash = 8;
  wide.prompt = 18;
  wide.shared = 16;
  wide.blocks = 30;
  wide.async = true;
  wide.aborts = 1;
  wide.preemptions = 1;

  auto& failures = out.emplace_back(
    plain("failures", "copies fail half way on one of two ranks"));
  failures.opts.ranks = 2;
  failures.copy_failures = 2;
  failures.blocks = 16;
  failures.preemptions = 1;

  auto& late = out.emplace_back(
    plain("deadlines", "copies miss their deadline and end long after"));
  late.deadlines = 3;
  late.requests = 6;
  late.shared = 4;
  late.aborts = 1;
  late.blocks = 16;
  late.slots = 5;

  auto& resets = out.emplace_back(
    plain("resets", "the cache is reset at any moment, twice"));
  resets.resets = 2;
  resets.slots = 4;
  resets.blocks = 16;
  resets.preemptions = 1;

  auto& window_resets = out.emplace_back(
    plain("window_resets", "resets with a sliding-window group"));
  add_window(window_resets, 6);
  window_resets.resets = 2;
  window_resets.prompt = 13;
  window_resets.shared = 12;
  window_resets.blocks = 22;
  window_resets.opts.ranks = 2;

  auto& deaths = out.emplace_back(
    plain("rank_deaths", "one of two ranks dies and comes back"));
  deaths.opts.ranks = 2;
  deaths.rank_deaths = 2;
  deaths.aborts = 1;
  deaths.blocks = 16;

  auto& both = out.emplace_back(
    plain("resets_and_deaths", "resets while one of two ranks dies and comes "
                               "back"));
  both.opts.ranks = 2;
  both.rank_deaths = 3;
  both.resets = 3;
  both.requests = 6;
  both.shared = 4;

  auto& engine = out.emplace_back(
    plain("by_engine", "the engine carries the plans to two ranks itself"));
  engine.opts.ranks = 2;
  engine.opts.delivery = plan_delivery::by_engine;
  engine.blocks = 13;
  engine.preemptions = 1;

  auto& edits = out.emplace_back(
    plain("edits", "running requests are rolled back and go on with another "
                   "text"));
  edits.edits = 2;
  edits.prompt = 6;
  edits.outputs = 8;
  edits.requests = 3;

  auto& last = out.emplace_back(
    plain("no_later_step", "no step follows the last finish (S13)"));
  last.stops_at_once = true;
  last.async = true;
  last.requests = 3;

  auto& silence = out.emplace_back(plain(
    "deaths_and_pauses", "a rank dies and comes back between requests that "
                         "come one at a time"));
  silence.opts.ranks = 2;
  silence.rank_deaths = 2;
  silence.requests = 6;
  silence.alive = 1;
  silence.prompt = 5;
  silence.outputs = 1;
  silence.shared = 4;

  auto& arc
    = out.emplace_back(plain("arc", "adaptive replacement with six slots"));
  arc.opts.policy = eviction_policy::arc;
  arc.slots = 6;
  arc.requests = 6;
  arc.shared = 4;
  arc.aborts = 1;
  arc.resets = 1;

  auto& threes = out.emplace_back(
    plain("chunks_of_three", "three blocks per chunk, a hash for each block"));
  threes.opts.blocks_per_chunk = 3;
  threes.prompt = 25;
  threes.shared = 24;
  threes.budget = 10;
  threes.blocks = 27;
  threes.preemptions = 2;

  auto& naps = out.emplace_back(
    plain("naps", "the engine gives its memory back at any moment and takes "
                  "it again, with questions why a prompt misses"));
  naps.opts.ranks = 2;
  naps.sleeps = 2;
  naps.explains = 2;
  naps.aborts = 2;
  naps.requests = 5;
  naps.shared = 4;
  naps.blocks = 16;

  auto& dreams = out.emplace_back(
    plain("naps_in_trouble", "the engine sleeps while steps are in flight, "
                             "with a sliding window, a small pool, a reset, "
                             "copies that fail and one that is late"));
  add_window(dreams, 8);
  dreams.async = true;
  dreams.stream_fences = true;
  dreams.sleeps = 2;
  dreams.explains = 2;
  dreams.slots = 10;
  dreams.prompt = 13;
  dreams.shared = 12;
  dreams.blocks = 26;
  dreams.aborts = 1;
  dreams.resets = 1;
  dreams.preemptions = 1;
  dreams.copy_failures = 1;
  dreams.deadlines = 1;

  auto& carried = out.emplace_back(
    plain("naps_by_engine", "the engine carries the plans itself, and sleeps "
                            "while requests are finished that no step has "
                            "planned"));
  carried.opts.delivery = plan_delivery::by_engine;
  carried.sleeps = 2;
  carried.explains = 1;
  carried.aborts = 2;
  carried.async = true;

  auto& away = out.emplace_back(
    plain("cuts", "two ranks in other processes; connections are cut, noticed "
                  "on either side, and come back"));
  away.opts.ranks = 2;
  away.remote = true;
  away.cuts = 3;
  away.aborts = 1;
  away.preemptions = 1;
  away.requests = 6;
  away.shared = 4;
  away.blocks = 16;

  auto& far = out.emplace_back(
    plain("cuts_and_deaths", "the same with deaths, copies that are late, a "
                             "reset, a small pool and fences in the stream"));
  far.opts.ranks = 2;
  far.remote = true;
  far.async = true;
  far.stream_fences = true;
  far.cuts = 3;
  far.rank_deaths = 1;
  far.deadlines = 1;
  far.copy_failures = 1;
  far.resets = 1;
  far.aborts = 1;
  far.requests = 6;
  far.shared = 4;
  far.slots = 6;
  far.blocks = 16;

  auto& naps_away = out.emplace_back(
    plain("cuts_and_naps", "the engine sleeps and wakes while connections are "
                           "cut"));
  naps_away.opts.ranks = 2;
  naps_away.remote = true;
  naps_away.cuts = 2;
  naps_away.sleeps = 2;
  naps_away.requests = 5;
  naps_away.shared = 4;
  naps_away.blocks = 16;

  auto& carried_away = out.emplace_back(
    plain("cuts_by_engine", "the engine carries the plans to ranks whose "
                            "connections are cut"));
  carried_away.opts.ranks = 2;
  carried_away.opts.delivery = plan_delivery::by_engine;
  carried_away.remote = true;
  carried_away.cuts = 3;
  carried_away.aborts = 1;
  carried_away.requests = 6;
  carried_away.shared = 4;
  carried_away.blocks = 16;

  auto& all = out.emplace_back(
    plain("everything", "two ranks, a sliding window, a small pool, aborts, "
                        "preemption, a reset, failures and a deadline in one "
                        "run"));
  add_window(all, 8);
  all.opts.ranks = 2;
  all.slots = 10;
  all.requests = 6;
  all.prompt = 13;
  all.shared = 12;
  all.blocks = 26;
  all.aborts = 1;
  all.preemptions = 2;
  all.resets = 1;
  all.copy_failures = 1;
  all.deadlines = 1;

  return out;
}

} // namespace

const std::vector<scenario>& all_scenarios() {
  static const auto made = make_all();
  return made;
}

const scenario* find_scenario(const std::string& name) {
  const auto& all = all_scenarios();
  const auto found = std::find_if(
    all.begin(), all.end(), [&](const scenario& x) { return x.name == name; });
  return found != all.end() ? &*found : nullptr;
}

} // namespace kvtide::explore
