// SPDX-License-Identifier: Apache-2.0

/// @file
/// Whether the vectors would notice a handler that does nothing: each one that
/// they reach is replaced by such a stub, in turn.

#include "messages/cache_manager.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/request.hpp"
#include "tests/conformance/replay.hpp"
#include "tests/conformance/vector_files.hpp"
#include "tests/conformance/vector_reader.hpp"
#include "tests/support/message_name.hpp"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace kvtide::conformance {

void PrintTo(const handler_name& handler, std::ostream* out) {
  *out << handler.actor << ':' << handler.message;
}

namespace {

using reasons = std::map<handler_name, std::string>;

/// Handlers that no vector reaches.
const auto unreached = reasons{
  {{"request", "shrink"}, "no vector rolls a request back"},
  {{"cache_manager", "release_promise"}, "only R11 holds hits, under safe"},
  {{"cache_manager", "release_slots"}, "only R9 keeps slots back, under safe"},
  {{"gpu_worker", "tick"}, "the replay's time is the test scheduler's"},
  {{"gpu_worker", "device_ticked"}, "as tick"},
  {{"cache_manager", "explain_keys"}, "no vector asks why"},
  {{"cache_manager", "get_pool_part"}, "no vector has a directory"},
  {{"gpu_worker", "pause"}, "no vector sleeps"},
  {{"gpu_worker", "report_again"}, "no vector loses a report"},
  {{"gpu_worker", "unregister_kv"}, "no vector takes the memory away"},
  {{"gpu_worker", "memory_unregistered"}, "as unregister_kv"},
  {{"gpu_worker", "get_rank_stats"}, "no vector asks for a rank's counters"},
  {{"gpu_worker", "device_breach"}, "no vector breaks the order"},
  {{"gpu_worker", "attach"}, "no vector has a rank in another process"},
  {{"gpu_worker", "seat"}, "as attach"},
};

template <class Interface>
void list(const std::string& actor, std::vector<handler_name>& out) {
  for (const auto& message : test::message_names<Interface>())
    out.push_back({actor, message});
}

std::vector<handler_name> all_handlers() {
  auto result = std::vector<handler_name>{};
  list<request_actor>("request", result);
  list<cache_manager_actor>("cache_manager", result);
  list<gpu_worker_actor>("gpu_worker", result);
  return result;
}

bool is_under_test(const handler_name& handler) {
  static const auto all = all_handlers();
  return std::find(all.begin(), all.end(), handler) != all.end();
}

const std::vector<scenario>& vectors() {
  static const auto files = [] {
    auto result = std::vector<scenario>{};
    auto paths
      = find_vector_files({KVTIDE_VECTORS}, [](const std::string& skipped) {
          ADD_FAILURE() << skipped;
        });
    if (paths)
      for (const auto& path : paths.value())
        if (auto file = read_vector_file(path))
          result.push_back(std::move(file).value());
    return result;
  }();
  return files;
}

traffic all_traffic(plan_delivery delivery) {
  auto sum = traffic{};
  for (const auto& file : vectors())
    add(sum, replay(file, {delivery, {}, nullptr}).handled);
  return sum;
}

/// Whether some vector has a mismatch if this handler does nothing.
bool noticed(plan_delivery delivery, const handler_name& handler) {
  return std::any_of(
    vectors().begin(), vectors().end(), [&](const scenario& file) {
      return !replay(file, {delivery, handler, nullptr}).mismatches.empty();
    });
}

class Stub : public ::testing::TestWithParam<plan_delivery> {
protected:
  void SetUp() override {
    ASSERT_FALSE(vectors().empty());
    // Actors are meant to be upset here.
    spdlog::set_level(spdlog::level::off);
  }
};

TEST_P(Stub, OfAnyHandlerThatAVectorReachesIsNoticed) {
  for (const auto& [handler, count] : all_traffic(GetParam())) {
    if (!is_under_test(handler))
      continue;
    EXPECT_TRUE(noticed(GetParam(), handler))
      << ::testing::PrintToString(handler) << ": no mismatch although " << count
      << " messages were thrown away";
  }
}

INSTANTIATE_TEST_SUITE_P(Delivery, Stub,
                         ::testing::Values(plan_delivery::direct,
                                           plan_delivery::by_engine),
                         [](const auto& instance) {
                           return instance.param == plan_delivery::direct
                                  ? "direct"
                                  : "by_engine";
                         });

TEST(Vectors, ReachAllHandlersThatAreNotListed) {
  auto sum = all_traffic(plan_delivery::direct);
  add(sum, all_traffic(plan_delivery::by_engine));
  for (const auto& handler : all_handlers()) {
    const auto why = unreached.find(handler);
    if (why == unreached.end()) {
      EXPECT_GT(sum[handler], 0U)
        << ::testing::PrintToString(handler) << " is not reached";
    } else {
      EXPECT_EQ(sum[handler], 0U) << ::testing::PrintToString(handler)
                                  << " is listed as: " << why->second;
    }
  }
}

} // namespace
} // namespace kvtide::conformance
