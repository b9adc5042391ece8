// SPDX-License-Identifier: Apache-2.0

/// @file
/// Replicas, a directory and a router in one process, with real threads.

#include "kvtide/blocking.hpp"
#include "kvtide/directory.hpp"
#include "kvtide/prefix_hasher.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace kvtide {
namespace {

/// Only a broken directory is waited for so long.
constexpr auto patience = 20s;

options small_options() {
  auto out = options{};
  out.blocks_per_chunk = 1;
  out.host_bytes = 1 << 16;
  return out;
}

std::vector<prefix_hash> keys_of(std::int32_t text, std::size_t tokens) {
  const auto prompt = std::vector<std::int32_t>(tokens, text);
  return prefix_hasher{16}.append(prompt.data(), prompt.size());
}

/// An engine with ten blocks of memory.
class replica {
public:
  replica(const directory& where, const std::string& name)
    : memory_(10 * 1'024) {
    auto opts = small_options();
    opts.publisher = make_publisher({{&where, {}, {}}, name}).value();
    runtime_.emplace(runtime::start(opts).value());
    engine_.emplace(*runtime_);
    gpu_.emplace(runtime_->local_rank(0));
    auto kv = kv_memory{};
    kv.tensors
      = {{memory_.data(), memory_.size(), memory_kind::host, 10, 1'024, 1'024}};
    kv.references = {{0, 0, 0, 0, 1'024}};
    EXPECT_TRUE(gpu_->register_kv(kv, patience));
  }

  /// Computes a prompt of four chunks and a token, and stores it.
  void serve(std::int32_t text) {
    const auto id = ++last_request_;
    runtime_->add({id, 65, 65});
    runtime_->extend({id, 0, keys_of(text, 65), {}, {}});
    step({{id, row_kind::fresh, {{1, 2, 3, 4, 5}}, 0, 65, 65}});
    EXPECT_TRUE(engine_->finish({id, finish_reason::stop, 65, 65}, patience));
    while (step({}))
      continue;
  }

  blocking_runtime& engine() {
    return *engine_;
  }

private:
  bool step(std::vector<step_row> rows) {
    const auto plan
      = engine_->step({++last_step_, std::move(rows), {}, {}}, patience);
    EXPECT_TRUE(plan && gpu_->begin_step(last_step_, {}, patience));
    runtime_->local_rank(0).end_step(last_step_, {});
    return plan && plan.value().pending_work;
  }

  std::vector<std::byte> memory_;
  std::optional<runtime> runtime_;
  std::optional<blocking_runtime> engine_;
  std::optional<blocking_rank> gpu_;
  request_id last_request_ = 0;
  step_id last_step_ = 0;
};

class Directory : public ::testing::Test {
protected:
  Directory() {
    where.emplace(directory::start({}).value());
    auto opts = router_options{};
    opts.place.here = &*where;
    opts.shared = small_options();
    opts.timeout = 10s;
    uut.emplace(router::start(opts).value());
  }

  /// Asks for a text until the answer is as wanted: what replicas say is under
  /// way for a moment.
  ::testing::AssertionResult
  hears(std::int32_t text,
        const std::function<bool(const replica_choice&)>& wanted) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < deadline)
      if (wanted(uut->ask(keys_of(text, 65))))
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "no such answer came";
  }

  std::optional<directory> where;
  std::optional<router> uut;
};

TEST_F(Directory, APromptGoesWhereItIsCached) {
  auto a = replica{*where, "a"};
  auto b = replica{*where, "b"};
  b.serve(42);
  EXPECT_TRUE(hears(42, [](const replica_choice& x) {
    return x.replica == "b" && x.tokens == 64 && x.chunks == 4
        && x.all.size() == 2;
  }));
  a.serve(43);
  EXPECT_TRUE(hears(43, [](const replica_choice& x) {
    return x.replica == "a" && x.tokens == 64;
  }));
}

TEST_F(Directory, WhatIsResetIsForgotten) {
  auto a = replica{*where, "a"};
  a.serve(42);
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.tokens == 64; }));
  EXPECT_TRUE(a.engine().reset(patience));
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.tokens == 0; }));
  a.serve(42);
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.tokens == 64; }));
}

TEST_F(Directory, AReplicaThatEndsIsForgotten) {
  {
    auto a = replica{*where, "a"};
    a.serve(42);
    EXPECT_TRUE(hears(42, [](const auto& x) { return x.tokens == 64; }));
  }
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.all.empty(); }));
  auto again = replica{*where, "a"};
  EXPECT_TRUE(
    hears(42, [](const auto& x) { return x.replica == "a" && x.tokens == 0; }));
}

TEST_F(Directory, ReplicasAndRoutersOutliveIt) {
  auto a = replica{*where, "a"};
  a.serve(42);
  where.reset();
  a.serve(43);
  EXPECT_TRUE(
    hears(42, [](const auto& x) { return x.reason.code == ec::timeout; }));
}

TEST_F(Directory, ARouterIsPolledAsARuntimeIs) {
  auto a = replica{*where, "a"};
  EXPECT_TRUE(hears(42, [](const auto& x) { return x.all.size() == 1; }));
  const auto first = uut->best_replica(keys_of(1, 65));
  const auto second = uut->best_replica(keys_of(2, 65));
  auto heard = std::vector<replica_choice>{};
  while (heard.size() < 2 && uut->wait(patience))
    for (auto& one : uut->poll())
      heard.push_back(std::move(one));
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].ticket, first);
  EXPECT_EQ(heard[1].ticket, second);
  EXPECT_EQ(heard[1].replica, "a");
}

TEST(DirectoryOptions, WhatIsWrongIsSaid) {
  EXPECT_EQ(directory::start({nullptr, 0}).failure().code, ec::invalid_options);
  EXPECT_EQ(make_publisher({{}, "a"}).failure().code, ec::invalid_options);
  EXPECT_EQ(
    make_publisher({{nullptr, "127.0.0.1:1", nullptr}, "a"}).failure().code,
    ec::invalid_options);
  auto where = directory::start({}).value();
  EXPECT_EQ(make_publisher({{&where, {}, {}}, ""}).failure().code,
            ec::invalid_options);
  auto opts = router_options{};
  opts.place.here = &where;
  opts.timeout = 0ms;
  EXPECT_EQ(router::start(opts).failure().code, ec::invalid_options);
  opts.timeout = 50ms;
  opts.shared.groups.front().sliding_window_tokens = 64;
  EXPECT_EQ(router::start(opts).failure().code, ec::unsupported);
}

} // namespace
} // namespace kvtide
