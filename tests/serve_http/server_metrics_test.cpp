// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/server_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>

namespace serve {
namespace {

using ::testing::HasSubstr;

TEST(ServerMetrics, ExplainsEveryFamily) {
  const auto page = server_metrics{}.text({});
  auto lines = std::istringstream{page};
  auto line = std::string{};
  auto families = 0;
  while (std::getline(lines, line)) {
    if (line.rfind("# TYPE ", 0) != 0)
      continue;
    ++families;
    const auto name = line.substr(7, line.find(' ', 7) - 7);
    EXPECT_THAT(page, HasSubstr("# HELP " + name + " ")) << name;
    const auto counts = line.find(" counter") != std::string::npos;
    const auto ends
      = name.size() > 6 && name.compare(name.size() - 6, 6, "_total") == 0;
    EXPECT_EQ(counts, ends) << name;
  }
  EXPECT_GT(families, 30);
}

TEST(ServerMetrics, ShowsWhatTheEngineSays) {
  auto stats = engine_stats{};
  stats.waiting = 3;
  stats.aborted_loading = 4;
  stats.cache.tracked_requests = 5;
  stats.cache.pinned_slots = 6;
  stats.cache.order_errors_by_rule[7] = 8;
  stats.cache.late_messages = 9;
  stats.rank.late_messages = 10;
  stats.rank.copied_bytes = std::uint64_t{1} << 40;
  const auto page = server_metrics{}.text(stats);
  EXPECT_THAT(page, HasSubstr("serve_requests{state=\"waiting\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("serve_aborts_total{state=\"loading\"} 4\n"));
  EXPECT_THAT(page, HasSubstr("\nkvtide_tracked_requests 5\n"));
  EXPECT_THAT(page,
              HasSubstr("kvtide_host_slots_by_state{state=\"pinned\"} 6\n"));
  EXPECT_THAT(page, HasSubstr("kvtide_order_errors_total{rule=\"S7\"} 8\n"));
  EXPECT_THAT(page, HasSubstr("\nkvtide_late_messages_total 9\n"));
  EXPECT_THAT(page, HasSubstr("\nkvtide_rank_late_messages_total 10\n"));
  EXPECT_THAT(page, HasSubstr("\nkvtide_copied_bytes_total 1099511627776\n"));
}

TEST(ServerMetrics, CountsWhatTheServerSees) {
  auto metrics = server_metrics{};
  metrics.connection_opened();
  metrics.connection_opened();
  metrics.connection_closed();
  metrics.answered(200);
  metrics.answered(422);
  metrics.answered(422);
  metrics.disconnected(disconnect_phase::in_the_middle);
  metrics.client_dropped(client_fault::slow_reader);
  metrics.first_token(std::chrono::milliseconds{30});
  const auto page = metrics.text({});
  EXPECT_THAT(page, HasSubstr("\nserve_connections 1\n"));
  EXPECT_THAT(page, HasSubstr("serve_answers_total{status=\"422\"} 2\n"));
  EXPECT_THAT(
    page, HasSubstr("serve_disconnects_total{phase=\"in_the_middle\"} 1\n"));
  EXPECT_THAT(
    page, HasSubstr("serve_dropped_clients_total{why=\"slow_reader\"} 1\n"));
  EXPECT_THAT(
    page,
    HasSubstr("serve_time_to_first_token_seconds_bucket{le=\"0.025\"} 0"));
  EXPECT_THAT(
    page, HasSubstr("serve_time_to_first_token_seconds_bucket{le=\"0.05\"} 1"));
  EXPECT_THAT(page, HasSubstr("serve_time_to_first_token_seconds_count 1\n"));
}

} // namespace
} // namespace serve
