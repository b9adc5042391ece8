// SPDX-License-Identifier: Apache-2.0

#include "examples/worker/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvtide::worker_program {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::variant<program_options, replay::early_exit>
parse(std::vector<const char*> words) {
  words.insert(words.begin(), "kvtide-worker");
  return parse_options(static_cast<int>(words.size()), words.data());
}

std::vector<const char*> usual(std::vector<const char*> more) {
  auto words = std::vector<const char*>{
    "--ranks",  "1",           "--total-ranks", "4",
    "--engine", "/tmp/w.sock", "--scheduler",   "127.0.0.1:7"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// One line that names what is wrong.
std::string refused(std::vector<const char*> words) {
  const auto res = parse(std::move(words));
  const auto* exit = std::get_if<replay::early_exit>(&res);
  if (exit == nullptr)
    return "nothing";
  EXPECT_EQ(exit->code, 2);
  EXPECT_EQ(std::count(exit->text.begin(), exit->text.end(), '\n'), 0);
  EXPECT_THAT(exit->text, StartsWith("kvtide-worker: "));
  EXPECT_THAT(exit->text, EndsWith("; see --help"));
  return exit->text;
}

TEST(WorkerOptions, AreRead) {
  const auto res = parse(
    usual({"--detection-ms", "500", "--layers", "3", "--fingerprint", "m",
           "--host-bytes", "1MiB", "--pool-name", "p", "--clock", "real"}));
  ASSERT_TRUE(std::holds_alternative<program_options>(res));
  const auto& opts = std::get<program_options>(res);
  EXPECT_THAT(opts.ranks, ElementsAre(1u));
  EXPECT_EQ(opts.shared.ranks, 4u);
  EXPECT_EQ(opts.scheduler, "127.0.0.1:7");
  EXPECT_EQ(opts.shared.network.detection, std::chrono::milliseconds{500});
  EXPECT_EQ(opts.shared.shape.layers, 3u);
  EXPECT_EQ(opts.shared.fingerprint, "m");
  EXPECT_EQ(opts.shared.host_bytes, 1u << 20);
  EXPECT_EQ(opts.shared.pool_name, "p");
  EXPECT_EQ(opts.shared.copy_latency_us, 0u);
  EXPECT_EQ(socket_of(opts, 1), "/tmp/w.sock");
}

TEST(WorkerOptions, TakeSeveralRanksWithAFolder) {
  EXPECT_THAT(parse_ranks("1-3"), ElementsAre(1u, 2u, 3u));
  EXPECT_THAT(parse_ranks("5,0-1"), ElementsAre(0u, 1u, 5u));
  for (const auto* text :
       {"", "a", "1-", "-1", "3-1", "1,1", "64", "1,,2", "1 "})
    EXPECT_THAT(parse_ranks(text), IsEmpty()) << text;
  const auto res = parse({"--ranks", "1-3", "--total-ranks", "4", "--engine",
                          "/tmp", "--listen", "127.0.0.1:0"});
  ASSERT_TRUE(std::holds_alternative<program_options>(res));
  EXPECT_EQ(socket_of(std::get<program_options>(res), 2), "/tmp/rank-2.sock");
}

TEST(WorkerOptions, RefuseWhatMakesNoSense) {
  EXPECT_THAT(refused({}), HasSubstr("--"));
  EXPECT_THAT(refused(usual({"--listen", "127.0.0.1:8"})),
              HasSubstr("either --scheduler or --listen"));
  EXPECT_THAT(refused({"--ranks", "1", "--total-ranks", "4", "--engine", "x"}),
              HasSubstr("either --scheduler or --listen"));
  EXPECT_THAT(refused({"--ranks", "4", "--total-ranks", "4", "--engine", "x",
                       "--scheduler", "127.0.0.1:7"}),
              HasSubstr("there is no rank 4"));
  EXPECT_THAT(refused({"--ranks", "x", "--total-ranks", "4", "--engine", "x",
                       "--scheduler", "127.0.0.1:7"}),
              HasSubstr("--ranks"));
  EXPECT_THAT(refused({"--ranks", "1-2", "--total-ranks", "4", "--engine",
                       "/no/such/folder", "--scheduler", "127.0.0.1:7"}),
              HasSubstr("--engine"));
  EXPECT_THAT(refused(usual({"--host-bytes", "0"})), HasSubstr("--host-bytes"));
  EXPECT_THAT(refused(usual({"--detection-ms", "5"})),
              HasSubstr("--detection-ms"));
  EXPECT_THAT(refused(usual({"--trace", "x"})), HasSubstr("--trace"));
  EXPECT_THAT(refused(usual({"--insecure", "--insecure"})),
              HasSubstr("more than once"));
}

TEST(WorkerOptions, ExplainThemselves) {
  const auto res = parse({"--help"});
  const auto* exit = std::get_if<replay::early_exit>(&res);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->code, 0);
  for (const auto* name :
       {"--ranks", "--total-ranks", "--scheduler", "--listen", "--engine",
        "--certificate", "--private-key", "--trusted", "--insecure",
        "--detection-ms", "--pool-name", "--layers", "--device"})
    EXPECT_THAT(exit->text, HasSubstr(name));
}

} // namespace
} // namespace kvtide::worker_program
