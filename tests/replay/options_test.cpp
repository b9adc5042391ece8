// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kvtide::replay {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::variant<replay_options, early_exit> parse(std::vector<const char*> words) {
  words.insert(words.begin(), {"kvtide-replay", "--trace", "t.jsonl"});
  return parse_options(static_cast<int>(words.size()), words.data());
}

replay_options accepted(std::vector<const char*> words) {
  auto res = parse(std::move(words));
  if (const auto* exit = std::get_if<early_exit>(&res)) {
    ADD_FAILURE() << exit->text;
    return {};
  }
  return std::get<replay_options>(res);
}

// One line that names what is wrong.
std::string refused(std::vector<const char*> words) {
  const auto res = parse(std::move(words));
  const auto* exit = std::get_if<early_exit>(&res);
  if (exit == nullptr)
    return "nothing";
  EXPECT_EQ(exit->code, 2);
  EXPECT_EQ(std::count(exit->text.begin(), exit->text.end(), '\n'), 0);
  EXPECT_THAT(exit->text, StartsWith("kvtide-replay: "));
  EXPECT_THAT(exit->text, EndsWith("; see --help"));
  return exit->text;
}

TEST(Options, HaveDefaults) {
  const auto opts = accepted({});
  EXPECT_EQ(opts.trace, "t.jsonl");
  EXPECT_EQ(opts.shape.layers, 2u);
  EXPECT_EQ(opts.shape.token_bytes(), 4u);
  EXPECT_EQ(opts.shape.device_blocks, 65'536u);
  EXPECT_EQ(opts.blocks_per_chunk, 8u);
  EXPECT_EQ(opts.step_ms, 50u);
  EXPECT_EQ(opts.token_budget, 8'192u);
  EXPECT_TRUE(opts.async);
  EXPECT_EQ(opts.rules, rule_set::safe);
  EXPECT_EQ(opts.copy_bytes_per_second(), 131'072u * 16);
}

TEST(Options, AreRead) {
  const auto opts
    = accepted({"--rows",       "10",        "--ranks",          "2",
                "--seed",       "7",         "--abort-rate",     "0.5",
                "--rules",      "reference", "--policy",         "arc",
                "--host-bytes", "2GiB",      "--device-blocks",  "99",
                "--clock",      "real",      "--json",           "-",
                "--sync",       "--packed",  "--copy-bandwidth", "3MiB",
                "--delivery",   "by_engine", "--no-progress"});
  EXPECT_EQ(opts.rows, 10u);
  EXPECT_EQ(opts.ranks, 2u);
  EXPECT_EQ(opts.seed, 7u);
  EXPECT_EQ(opts.abort_rate, 0.5);
  EXPECT_EQ(opts.rules, rule_set::reference);
  EXPECT_EQ(opts.policy, eviction_policy::arc);
  EXPECT_EQ(opts.host_bytes, 2ull << 30);
  EXPECT_EQ(opts.shape.device_blocks, 99u);
  EXPECT_EQ(opts.clock, device_kind::host);
  EXPECT_EQ(opts.delivery, plan_delivery::by_engine);
  EXPECT_EQ(opts.json, "-");
  EXPECT_FALSE(opts.async);
  EXPECT_TRUE(opts.shape.packed);
  EXPECT_EQ(opts.copy_bytes_per_second(), 3ull << 20);
  EXPECT_FALSE(opts.progress);
}

TEST(Options, SlowCopiesDownOnlyInSimulatedTime) {
  EXPECT_EQ(accepted({}).copy_latency_us, 20'000u);
  EXPECT_EQ(accepted({"--clock", "real"}).copy_latency_us, 0u);
  EXPECT_EQ(accepted({"--clock", "real"}).copy_bytes_per_second(), 0u);
  EXPECT_EQ(
    accepted({"--clock", "real", "--copy-latency-us", "7"}).copy_latency_us,
    7u);
}

TEST(Options, AreReadForAGpu) {
  const auto opts = accepted({"--device",
                              "cuda",
                              "--device-index",
                              "3",
                              "--cuda-path",
                              "plain",
                              "--cuda-kernel-below",
                              "4KiB",
                              "--cuda-kernel-blocks",
                              "5",
                              "--cuda-streams",
                              "2",
                              "--cuda-slice",
                              "1MiB",
                              "--cuda-in-flight",
                              "2MiB",
                              "--cuda-fence",
                              "host",
                              "--huge-pages",
                              "required",
                              "--prefault-threads",
                              "6",
                              "--no-numa",
                              "--allow-pageable",
                              "--calibration",
                              "file"});
  EXPECT_TRUE(opts.on_gpu());
  EXPECT_EQ(opts.kind(), device_kind::cuda);
  EXPECT_EQ(opts.device_index, 3);
  EXPECT_EQ(opts.cuda.path, copy_path::plain);
  EXPECT_EQ(opts.cuda.kernel_below, 4'096u);
  EXPECT_EQ(opts.cuda.kernel_blocks, 5u);
  EXPECT_EQ(opts.cuda.streams_per_direction, 2u);
  EXPECT_EQ(opts.cuda.slice_bytes, 1u << 20);
  EXPECT_EQ(opts.cuda.bytes_in_flight, 2u << 20);
  EXPECT_EQ(opts.cuda.fences, fence_wait::host);
  EXPECT_EQ(opts.cuda.huge_pages, huge_page_use::required);
  EXPECT_EQ(opts.cuda.prefault_threads, 6u);
  EXPECT_FALSE(opts.cuda.numa_binding);
  EXPECT_TRUE(opts.cuda.allow_pageable);
  EXPECT_EQ(opts.cuda.calibration_file, "file");
  const auto defaults = accepted({});
  EXPECT_FALSE(defaults.on_gpu());
  EXPECT_EQ(defaults.kind(), device_kind::host_virtual);
  EXPECT_EQ(defaults.cuda.kernel_below, std::nullopt);
  EXPECT_TRUE(defaults.cuda.numa_binding);
  EXPECT_EQ(accepted({"--device", "auto"}).device, device_choice::automatic);
}

TEST(Options, RefuseWhatAGpuCannotDo) {
  for (const auto* device : {"cuda", "auto"})
    EXPECT_THAT(refused({"--device", device, "--clock", "virtual"}),
                HasSubstr("--clock"));
  EXPECT_TRUE(accepted({"--device", "cuda", "--clock", "real"}).on_gpu());
  EXPECT_THAT(refused({"--device", "gpu"}), HasSubstr("--device"));
  EXPECT_THAT(refused({"--device-index", "-1"}), HasSubstr("--device-index"));
  EXPECT_THAT(refused({"--cuda-path", "fast"}), HasSubstr("--cuda-path"));
  EXPECT_THAT(refused({"--cuda-kernel-blocks", "0"}),
              HasSubstr("--cuda-kernel-blocks"));
  EXPECT_THAT(refused({"--cuda-slice", "2MiB", "--cuda-in-flight", "1MiB"}),
              HasSubstr("--cuda-in-flight"));
}

TEST(Options, ExplainThemselves) {
  const auto res = parse({"--help"});
  const auto* exit = std::get_if<early_exit>(&res);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->code, 0);
  for (const auto* name :
       {"--trace", "--rows", "--ranks", "--seed", "--abort-rate", "--rules",
        "--policy", "--host-bytes", "--device-blocks", "--clock", "--json",
        "--device", "--cuda-path"})
    EXPECT_THAT(exit->text, HasSubstr(name));
}

TEST(Options, RefuseWhatIsOutOfRange) {
  EXPECT_THAT(refused({"--device-blocks", "0"}), HasSubstr("--device-blocks"));
  EXPECT_THAT(refused({"--tokens-per-block", "-4"}),
              HasSubstr("--tokens-per-block"));
  EXPECT_THAT(refused({"--blocks-per-chunk", "0"}),
              HasSubstr("--blocks-per-chunk"));
  EXPECT_THAT(refused({"--layers", "0"}), HasSubstr("--layers"));
  EXPECT_THAT(refused({"--abort-rate", "1.5"}), HasSubstr("--abort-rate"));
  EXPECT_THAT(refused({"--abort-rate", "nan"}), HasSubstr("--abort-rate"));
  EXPECT_THAT(refused({"--rows", "-1"}), HasSubstr("--rows"));
  EXPECT_THAT(refused({"--rows", "99999999999999999999"}), HasSubstr("--rows"));
  EXPECT_THAT(refused({"--host-bytes", "-1"}), HasSubstr("--host-bytes"));
  EXPECT_THAT(refused({"--host-bytes", "5parsec"}), HasSubstr("--host-bytes"));
  EXPECT_THAT(refused({"--host-bytes", "99999999999TiB"}),
              HasSubstr("--host-bytes"));
  EXPECT_THAT(refused({"--ranks", "65"}), HasSubstr("--ranks"));
}

TEST(Options, RefuseWhatTheyDoNotKnow) {
  EXPECT_THAT(refused({"--rules", "loose"}), HasSubstr("--rules"));
  EXPECT_THAT(refused({"--policy", "fifo"}), HasSubstr("--policy"));
  EXPECT_THAT(refused({"--clock", "wall"}), HasSubstr("--clock"));
  EXPECT_THAT(refused({"--delivery", "engine"}),
              HasSubstr("engine is none of direct, by_engine"));
  EXPECT_THAT(refused({"--colour"}), HasSubstr("--colour"));
  EXPECT_THAT(refused({"extra"}), HasSubstr("extra"));
  EXPECT_THAT(refused({"two\nlines"}), HasSubstr("two lines"));
  EXPECT_THAT(refused({"--seed"}), HasSubstr("--seed"));
}

TEST(Options, RefuseToBeGivenTwice) {
  EXPECT_THAT(refused({"--seed", "1", "--seed", "2"}), HasSubstr("--seed"));
  EXPECT_THAT(refused({"--rules", "safe", "--rules", "safe"}),
              HasSubstr("--rules"));
  EXPECT_THAT(refused({"--sync", "--sync"}), HasSubstr("--sync"));
  EXPECT_THAT(refused({"--packed", "--planes"}), HasSubstr("--packed"));
}

TEST(Options, PlaceRanksElsewhere) {
  const auto opts = accepted(
    {"--workers", "here,dials,127.0.0.1:7,dials", "--lane", "a", "--lane", "b",
     "--lane", "c", "--listen", "127.0.0.1:0", "--detection-ms", "1000"});
  EXPECT_EQ(opts.ranks, 4u);
  EXPECT_EQ(opts.ranks_here(), 1u);
  EXPECT_TRUE(opts.has_remote_ranks());
  ASSERT_EQ(opts.workers.size(), 4u);
  EXPECT_EQ(opts.workers[0].where, worker_place::kind::here);
  EXPECT_EQ(opts.workers[1].where, worker_place::kind::dials_in);
  EXPECT_EQ(opts.workers[2].where, worker_place::kind::dialed);
  EXPECT_EQ(opts.workers[2].address, "127.0.0.1:7");
  EXPECT_EQ(opts.lane_of(0), "");
  EXPECT_EQ(opts.lane_of(1), "a");
  EXPECT_EQ(opts.lane_of(3), "c");
  EXPECT_EQ(opts.network.listen, "127.0.0.1:0");
  EXPECT_LT(opts.lane_limit(), std::chrono::seconds{2});
  const auto folder
    = accepted({"--workers", "here,dials,dials", "--lane", "/tmp"});
  EXPECT_EQ(folder.lane_of(0), "");
  EXPECT_EQ(folder.lane_of(2), "/tmp/rank-2.sock");
  EXPECT_EQ(accepted({"--workers", "here,dials", "--lane", "/tmp"}).lane_of(1),
            "/tmp/rank-1.sock");
  const auto all = accepted({"--workers", "here,here"});
  EXPECT_EQ(all.ranks, 2u);
  EXPECT_FALSE(all.has_remote_ranks());
  EXPECT_FALSE(accepted({"--ranks", "3"}).has_remote_ranks());
}

TEST(Options, RefuseRanksElsewhereThatCannotBe) {
  EXPECT_THAT(refused({"--workers", "here,there"}),
              HasSubstr("there is none of here"));
  EXPECT_THAT(refused({"--workers", "here,dials"}), HasSubstr("--lane"));
  EXPECT_THAT(refused({"--workers", "here,dials,dials", "--lane", "a"}),
              HasSubstr("--lane"));
  EXPECT_THAT(refused({"--lane", "a"}), HasSubstr("--workers"));
  EXPECT_THAT(refused({"--workers", "here,here", "--ranks", "3"}),
              HasSubstr("--ranks says 3"));
  EXPECT_THAT(
    refused({"--workers", "here,dials", "--lane", "a", "--host-bytes", "0"}),
    HasSubstr("--host-bytes 0"));
}

TEST(Options, RepeatATraceOnlyInRealTime) {
  EXPECT_THAT(refused({"--pace-us", "5"}), HasSubstr("--clock real"));
  EXPECT_THAT(refused({"--repeat-seconds", "5"}), HasSubstr("--clock real"));
  EXPECT_EQ(
    accepted({"--clock", "real", "--pace-us", "5", "--repeat-seconds", "2"})
      .repeat_seconds,
    2u);
}

TEST(Options, RefuseMoreMemoryThanTheMachineHas) {
  EXPECT_THAT(refused({"--host-bytes", "64TiB"}), HasSubstr("--host-bytes"));
  EXPECT_THAT(refused({"--ranks", "64", "--host-bytes", "2TiB"}),
              HasSubstr("--host-bytes"));
  EXPECT_THAT(refused({"--layers", "1024", "--kv-heads", "1024", "--head-size",
                       "4096", "--dtype-bytes", "8"}),
              HasSubstr("--device-blocks"));
}

} // namespace
} // namespace kvtide::replay
