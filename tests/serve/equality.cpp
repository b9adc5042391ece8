// SPDX-License-Identifier: Apache-2.0

#include "tests/serve/equality.hpp"

#include "examples/serve/engine/serving_engine.hpp"
#include "examples/serve/model/straight_answer.hpp"
#include "tests/serve/answers.hpp"
#include "tests/serve/cache_faults.hpp"
#include "tests/serve/leftovers.hpp"
#include "tests/serve/prompts.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace serve::test {

namespace {

// Requests without an answer at a time: more than fit into a batch.
constexpr std::size_t most_open = 48;

// Late enough to count as late, soon enough to be waited for.
constexpr auto deadline = std::chrono::milliseconds{20};
constexpr auto delay = 3 * deadline;

engine_options make_options(const known_answers& known, situation what) {
  auto res = engine_options{};
  res.variant = known.variant;
  res.seed = known.seed;
  res.max_batch = 16;
  // Slow enough for copies to be in flight when their blocks are wanted.
  res.copy_latency = std::chrono::microseconds{500};
  switch (what) {
    case situation::offload_off:
      res.host_bytes = 0;
      break;
    case situation::offload_on:
      break;
    case situation::preemption:
      // An answer grows by several blocks, and few are left.
      res.tokens_per_block = 4;
      res.step_tokens = 64;
      res.device_blocks = 130;
      break;
    case situation::failed_load:
      res.job_deadline = deadline;
      [[fallthrough]];
    case situation::reload:
    case situation::corrupted_load:
      res.device_blocks = 64;
      break;
  }
  return res;
}

// Every third load fails in the middle, every eighth is late.
copy_trouble make_load_failures() {
  using kvtide::gpu::fault_kind;
  auto res = copy_trouble{};
  res.fault = [loads = std::uint64_t{0}](kvtide::job_id,
                                         kvtide::job_kind kind) mutable {
    if (kind != kvtide::job_kind::load)
      return kvtide::gpu::copy_fault{};
    ++loads;
    if (loads % 8 == 0)
      return kvtide::gpu::copy_fault{fault_kind::delay, 0,
                                     std::chrono::nanoseconds{delay}.count()};
    if (loads % 3 == 0)
      return kvtide::gpu::copy_fault{fault_kind::fail,
                                     static_cast<std::uint32_t>(loads % 2), 0};
    return kvtide::gpu::copy_fault{};
  };
  return res;
}

void find_faults(comparison& res) {
  const auto expect = [&res](bool holds, const char* sentence) {
    if (!holds)
      res.faults.emplace_back(sentence);
  };
  const auto& last = res.last;
  if (res.what == situation::corrupted_load) {
    expect(res.corrupted > 0, "no load was corrupted");
    expect(res.differences > 0, "wrong bytes were not noticed");
  } else {
    expect(res.differences == 0, "answers differ from a straight computation");
  }
  switch (res.what) {
    case situation::offload_off:
      expect(last.cache.stored_chunks == 0, "something was stored");
      break;
    case situation::offload_on:
      expect(last.cache.stored_chunks > 0, "nothing was stored");
      break;
    case situation::reload:
    case situation::corrupted_load:
      expect(last.loads_done > 0 && last.host_hit_tokens > 0,
             "nothing was loaded");
      break;
    case situation::preemption:
      expect(last.preemptions > 0, "nobody was preempted");
      break;
    case situation::failed_load:
      expect(last.loads_failed > 0, "no load failed");
      expect(last.rank.late_jobs > 0, "no load was late");
      break;
  }
  for (auto& sentence : left_over(last))
    res.faults.push_back(std::move(sentence));
}

} // namespace

std::string_view to_word(situation what) noexcept {
  constexpr std::string_view words[]
    = {"offload off", "offload on",  "reload",
       "preemption",  "failed load", "corrupted load"};
  return words[static_cast<std::size_t>(what)];
}

known_answers answer_straight(model_variant variant, std::uint64_t seed,
                              std::size_t prompts) {
  auto res = known_answers{variant, seed, make_prompts(seed, prompts), {}};
  const auto model = transformer{variant, seed, engine_options{}.max_tokens};
  for (const auto& one : res.requests)
    res.texts.push_back(straight_answer(model, one.prompt, one.max_tokens));
  return res;
}

comparison compare(const known_answers& known, situation what) {
  auto res = comparison{};
  res.what = what;
  res.variant = known.variant;
  auto opts = make_options(known, what);
  const auto corrupted = std::make_shared<std::atomic<std::uint64_t>>(0);
  if (what == situation::failed_load)
    add_trouble(opts, make_load_failures());
  if (what == situation::corrupted_load)
    add_trouble(opts, {{}, corrupted});
  auto engine = serving_engine::start(opts);
  if (!engine) {
    res.faults.push_back(engine.failure().text);
    return res;
  }
  auto got = answers{*engine.value()};
  const auto reloads = what == situation::reload
                    || what == situation::failed_load
                    || what == situation::corrupted_load;
  for (auto round = reloads ? 2 : 1; round > 0; --round)
    for (const auto& request : known.requests)
      if (!got.wait_for_open(most_open) || !got.ask(request)) {
        res.faults.emplace_back("the engine is stuck, or refuses a request");
        return res;
      }
  const auto report = engine.value()->stop(patience);
  if (!report.drained)
    res.faults.emplace_back("requests were left without an answer");
  res.last = report.last;
  res.corrupted = corrupted->load();
  auto index = std::size_t{0};
  for (const auto& one : got.all()) {
    const auto right = one.end == completion_end::length
                    && one.text == known.texts[index % known.texts.size()];
    res.differences += right ? 0 : 1;
    ++index;
  }
  res.answers = index;
  find_faults(res);
  return res;
}

std::string make_table(const std::vector<comparison>& all) {
  auto res = std::string{};
  const auto add = [&res](const char* format, auto... values) {
    char line[160];
    std::snprintf(line, sizeof(line), format, values...);
    res += line;
  };
  add("%-15s %-8s %8s %8s %9s %9s %8s %7s %7s %7s\n", "situation", "model",
      "answers", "differ", "computed", "device", "host", "loads", "failed",
      "preempt");
  for (const auto& one : all) {
    const auto number = [](std::uint64_t value) {
      return static_cast<unsigned long long>(value);
    };
    add("%-15s %-8s %8llu %8llu %9llu %9llu %8llu %7llu %7llu %7llu\n",
        std::string{to_word(one.what)}.c_str(),
        one.variant == model_variant::full_attention ? "full" : "sliding",
        number(one.answers), number(one.differences),
        number(one.last.computed_tokens), number(one.last.device_hit_tokens),
        number(one.last.host_hit_tokens), number(one.last.loads_done),
        number(one.last.loads_failed), number(one.last.preemptions));
    for (const auto& fault : one.faults)
      res += "  FAULT: " + fault + '\n';
  }
  return res;
}

} // namespace serve::test
