// SPDX-License-Identifier: Apache-2.0

#include "kvtide/gpu.hpp"

#include "examples/replay/device_choice.hpp"
#include "examples/replay/engine.hpp"
#include "examples/replay/mix.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <ostream>
#include <string>
#include <variant>
#include <vector>

namespace kvtide::replay {
namespace {

constexpr nanoseconds_t millisecond = 1'000'000;

// Conversations that share prefixes, on a device too small for all of them.
std::vector<trace_row> make_trace(std::size_t size) {
  auto chance = dice{7, 7};
  auto rows = std::vector<trace_row>{};
  auto arrival = nanoseconds_t{0};
  auto next_id = std::uint64_t{1'000};
  for (auto index = std::size_t{0}; index < size; ++index) {
    auto row = trace_row{};
    row.arrival = arrival;
    row.prompt_tokens = static_cast<token_count>(1 + chance.roll(3'000));
    row.output_tokens = static_cast<token_count>(1 + chance.roll(60));
    const auto talk = chance.roll(6);
    const auto ids = (row.prompt_tokens + tokens_per_id - 1) / tokens_per_id;
    const auto shared = static_cast<token_count>(chance.roll(5));
    for (auto id = token_count{0}; id < ids; ++id)
      row.prefix_ids.push_back(
        id < shared ? talk * 10 + static_cast<std::uint64_t>(id) : next_id++);
    rows.push_back(std::move(row));
    arrival += static_cast<nanoseconds_t>(chance.roll(120)) * millisecond;
  }
  return rows;
}

replay_options make_options() {
  auto opts = replay_options{};
  opts.trace = "made up";
  opts.shape.device_blocks = 900;
  opts.host_bytes = 512u << 10;
  opts.token_budget = 1'024;
  opts.abort_rate = 0.1;
  opts.quick_reuse = 0.5;
  opts.revisit_rate = 0.5;
  return opts;
}

report replay(const replay_options& opts, const std::vector<trace_row>& rows) {
  auto uut = engine{opts, rows, [](const progress&) { return true; }};
  return uut.run();
}

nlohmann::json without_timing(const report& what) {
  auto res = nlohmann::json::parse(to_json(what));
  res.erase("timing");
  return res;
}

// Each job that was planned was copied, all of it and once.
void expect_consistent(const report& what) {
  ASSERT_EQ(what.runtime.failed_jobs, 0u);
  EXPECT_EQ(what.copies.bytes,
            what.counts.stored_bytes + what.counts.loaded_bytes);
  EXPECT_GE(what.copies.time.count(), 0);
  const auto timing = nlohmann::json::parse(to_json(what)).at("timing");
  auto sum = 0.0;
  for (const double share : timing.at("runtime_shares")) {
    EXPECT_GE(share, 0);
    sum += share;
  }
  EXPECT_LE(sum, 1 + 1e-9);
  EXPECT_NEAR(timing.at("runtime_share"), sum, 1e-9);
}

// -- every setting ------------------------------------------------------------

struct setting {
  const char* name;
  void (*apply)(replay_options&);
};

std::ostream& operator<<(std::ostream& out, const setting& what) {
  return out << what.name;
}

class Engine : public ::testing::TestWithParam<setting> {};

TEST_P(Engine, FindsEveryByteRightAndLeavesNothingOver) {
  const auto rows = make_trace(120);
  auto opts = make_options();
  GetParam().apply(opts);
  const auto result = replay(opts, rows);
  const auto shown = to_text(result);
  EXPECT_EQ(result.exit_code(), 0) << shown;
  EXPECT_EQ(result.all_mismatches(), 0u) << shown;
  EXPECT_EQ(result.left_over(), 0u) << shown;
  EXPECT_EQ(result.counts.finished + result.counts.all_aborted()
              + result.counts.ignored,
            rows.size())
    << shown;
  EXPECT_GT(result.counts.preemptions, 0u) << shown;
  EXPECT_GT(result.compared_bytes[0], 0u) << shown;
  expect_consistent(result);
}

INSTANTIATE_TEST_SUITE_P(
  Settings, Engine,
  ::testing::Values(
    setting{"async", [](replay_options&) {}},
    setting{"sync", [](replay_options& opts) { opts.async = false; }},
    setting{"two_ranks", [](replay_options& opts) { opts.ranks = 2; }},
    setting{"packed", [](replay_options& opts) { opts.shape.packed = true; }},
    setting{"arc",
            [](replay_options& opts) { opts.policy = eviction_policy::arc; }},
    setting{"window",
            [](replay_options& opts) { opts.shape.sliding_window = 300; }},
    setting{"window_packed_sync_two_ranks",
            [](replay_options& opts) {
              opts.shape.sliding_window = 40;
              opts.shape.packed = true;
              opts.async = false;
              opts.ranks = 2;
            }},
    setting{"odd_sizes",
            [](replay_options& opts) {
              opts.shape.tokens_per_block = 7;
              opts.shape.device_blocks = 2'000;
              opts.shape.head_size = 3;
              opts.blocks_per_chunk = 5;
            }},
    setting{"reference",
            [](replay_options& opts) { opts.rules = rule_set::reference; }},
    setting{"plans_through_the_engine",
            [](replay_options& opts) {
              opts.delivery = plan_delivery::by_engine;
              opts.ranks = 2;
            }},
    setting{"slow_copies",
            [](replay_options& opts) { opts.copy_latency_us = 400'000; }},
    setting{"real_clock",
            [](replay_options& opts) {
              opts.clock = device_kind::host;
              opts.copy_latency_us = 0;
              opts.copy_bandwidth = 0;
            }}),
  [](const auto& what) { return std::string{what.param.name}; });

// -- on a GPU -----------------------------------------------------------------

class EngineOnGpu : public Engine {};

TEST_P(EngineOnGpu, FindsEveryByteRightAndLeavesNothingOver) {
  if (!gpu::device_count())
    GTEST_SKIP() << "no GPU";
  const auto rows = make_trace(40);
  auto opts = make_options();
  opts.device = device_choice::cuda;
  GetParam().apply(opts);
  const auto chosen = choose_device(opts);
  const auto result = replay(std::get<chosen_device>(chosen).opts, rows);
  const auto shown = to_text(result);
  EXPECT_EQ(result.exit_code(), 0) << shown;
  EXPECT_FALSE(result.notes.empty()) << shown;
  EXPECT_GT(result.counts.stored_bytes, 0u) << shown;
  EXPECT_GT(result.compared_bytes[0], 0u) << shown;
  expect_consistent(result);
}

INSTANTIATE_TEST_SUITE_P(
  Settings, EngineOnGpu,
  ::testing::Values(setting{"async", [](replay_options&) {}},
                    setting{"sync_packed",
                            [](replay_options& opts) {
                              opts.async = false;
                              opts.shape.packed = true;
                            }},
                    setting{"window_two_ranks",
                            [](replay_options& opts) {
                              opts.shape.sliding_window = 300;
                              opts.ranks = 2;
                            }},
                    setting{"host_fences_one_by_one",
                            [](replay_options& opts) {
                              opts.cuda.fences = fence_wait::host;
                              opts.cuda.path = copy_path::plain;
                              opts.shape.tokens_per_block = 7;
                              opts.shape.device_blocks = 2'000;
                              opts.shape.head_size = 3;
                            }},
                    setting{"kernel",
                            [](replay_options& opts) {
                              opts.cuda.path = copy_path::kernel;
                            }}),
  [](const auto& what) { return std::string{what.param.name}; });

// -- single properties
// ---------------------------------------------------------

TEST(EngineRun, GivesTheSameReportForTheSameOptions) {
  const auto rows = make_trace(80);
  const auto opts = make_options();
  EXPECT_EQ(without_timing(replay(opts, rows)),
            without_timing(replay(opts, rows)));
}

TEST(EngineRun, DependsOnTheSeed) {
  const auto rows = make_trace(80);
  auto opts = make_options();
  const auto first = without_timing(replay(opts, rows));
  opts.seed = 2;
  EXPECT_NE(first, without_timing(replay(opts, rows)));
}

TEST(EngineRun, ReachesTheIdealHitRateWithEnoughMemory) {
  const auto rows = make_trace(120);
  auto opts = make_options();
  opts.shape.device_blocks = 4'000;
  opts.host_bytes = 64u << 20;
  opts.abort_rate = 0;
  opts.revisit_rate = 0;
  const auto result = replay(opts, rows);
  const auto& counts = result.counts;
  EXPECT_EQ(counts.prompt_tokens, result.ideal.prompt_tokens);
  EXPECT_NEAR(result.hit_rate(), result.ideal_hit_rate(), 0.02);
}

TEST(EngineRun, WorksWithoutOffloading) {
  auto opts = make_options();
  opts.host_bytes = 0;
  const auto result = replay(opts, make_trace(60));
  EXPECT_EQ(result.exit_code(), 0) << to_text(result);
  EXPECT_EQ(result.counts.stored_bytes, 0u);
  EXPECT_EQ(result.counts.loaded_tokens, 0);
  expect_consistent(result);
}

TEST(EngineRun, IgnoresRequestsThatNeverFit) {
  auto opts = make_options();
  opts.shape.device_blocks = 3;
  const auto result = replay(opts, make_trace(20));
  EXPECT_EQ(result.exit_code(), 0) << to_text(result);
  EXPECT_GT(result.counts.ignored, 10u);
}

TEST(EngineRun, EndsCleanlyWhenItIsInterrupted) {
  const auto rows = make_trace(120);
  auto steps = 0;
  auto uut = engine{make_options(), rows,
                    [&steps](const progress&) { return ++steps < 60; }};
  const auto result = uut.run();
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.exit_code(), 130);
  EXPECT_EQ(result.left_over(), 0u) << to_text(result);
  EXPECT_LT(result.counts.finished, rows.size());
  expect_consistent(result);
}

TEST(EngineRun, RefusesAHostPoolThatIsTooSmall) {
  auto opts = make_options();
  opts.host_bytes = 10;
  const auto rows = make_trace(1);
  EXPECT_THROW(replay(opts, rows), bad_configuration);
}

TEST(EngineRun, OverlapsEverythingOnTheSampleByDefault) {
  const auto rows = read_trace(KVTIDE_REPLAY_SAMPLE);
  ASSERT_TRUE(rows.ok()) << rows.failure().text;
  const auto result = replay(replay_options{}, rows.value());
  const auto shown = to_text(result);
  const auto& counts = result.counts;
  EXPECT_EQ(result.exit_code(), 0) << shown;
  EXPECT_GT(counts.in_flight_at_flush, 0u) << shown;
  EXPECT_GT(counts.flush_waits, 0u) << shown;
  EXPECT_GT(counts.flush_delays, 0u) << shown;
  EXPECT_GT(counts.late_completions, 0u) << shown;
  EXPECT_GT(counts.loads_overlapping_stores, 0u) << shown;
  EXPECT_GT(counts.preemptions, 0u) << shown;
  EXPECT_GT(counts.deferrals, 0u) << shown;
  EXPECT_GT(counts.held_blocks, 0u) << shown;
  EXPECT_GT(result.runtime.evicted_chunks, 0u) << shown;
  for (const auto count : counts.aborted)
    EXPECT_GT(count, 0u) << shown;
}

} // namespace
} // namespace kvtide::replay
