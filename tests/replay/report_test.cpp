// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>

namespace kvtide::replay {
namespace {

using namespace std::chrono_literals;

using ::testing::HasSubstr;
using ::testing::Not;

// Two seconds, of which the runtime took one half.
report make_report() {
  auto res = report{};
  res.times.wall_seconds = 2;
  res.times.runtime = {600ms, 100ms, 300ms};
  res.copies = {3'000'000, 1ms};
  res.memcpy_bytes_per_second = 4e9;
  return res;
}

nlohmann::json timing_of(const report& what) {
  return nlohmann::json::parse(to_json(what)).at("timing");
}

TEST(Report, SaysWhatShareOfTheWallTimeTheRuntimeTook) {
  const auto uut = make_report();
  const auto timing = timing_of(uut);
  EXPECT_DOUBLE_EQ(timing.at("runtime_share"), 0.5);
  const auto& shares = timing.at("runtime_shares");
  EXPECT_DOUBLE_EQ(shares.at("calls"), 0.3);
  EXPECT_DOUBLE_EQ(shares.at("news"), 0.05);
  EXPECT_DOUBLE_EQ(shares.at("waits"), 0.15);
  EXPECT_THAT(to_text(uut),
              HasSubstr("50.00 % of wall time: 30.00 % calls, 5.00 % news, "
                        "15.00 % moving simulated time\n"));
}

TEST(Report, NamesTheWaitsByTheClock) {
  auto uut = make_report();
  uut.opts.clock = device_kind::host;
  EXPECT_THAT(to_text(uut), HasSubstr("15.00 % waiting for copies\n"));
}

TEST(Report, KeepsSharesBetweenZeroAndOne) {
  auto uut = make_report();
  EXPECT_EQ(uut.times.share(0ns), 0);
  EXPECT_EQ(uut.times.share(3s), 1);
  uut.times.wall_seconds = 0;
  EXPECT_EQ(uut.times.share(3s), 0);
}

TEST(Report, ComparesTheCopiesWithMemcpy) {
  const auto uut = make_report();
  const auto copies = timing_of(uut).at("copies");
  EXPECT_DOUBLE_EQ(copies.at("to_memcpy"), 0.75);
  EXPECT_DOUBLE_EQ(copies.at("bytes_per_second"), 3e9);
  EXPECT_DOUBLE_EQ(copies.at("memcpy_bytes_per_second"), 4e9);
  EXPECT_DOUBLE_EQ(copies.at("seconds"), 1e-3);
  EXPECT_EQ(copies.at("fragment_bytes"), uut.opts.shape.piece_bytes());
  EXPECT_THAT(to_text(uut), HasSubstr("75.00 % of memcpy: "));
}

TEST(Report, ComparesNothingThatWasNotMeasured) {
  auto uut = make_report();
  uut.memcpy_bytes_per_second = 0;
  auto copies = timing_of(uut).at("copies");
  EXPECT_TRUE(copies.at("to_memcpy").is_null());
  EXPECT_TRUE(copies.at("memcpy_bytes_per_second").is_null());
  EXPECT_DOUBLE_EQ(copies.at("bytes_per_second"), 3e9);
  EXPECT_THAT(to_text(uut), Not(HasSubstr("memcpy")));
  uut = make_report();
  uut.copies = {};
  copies = timing_of(uut).at("copies");
  EXPECT_TRUE(copies.at("to_memcpy").is_null());
  EXPECT_TRUE(copies.at("bytes_per_second").is_null());
  EXPECT_THAT(to_text(uut), HasSubstr("copies            none\n"));
}

} // namespace
} // namespace kvtide::replay
