// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/blocking.hpp"
#include "kvtide/directory.hpp"
#include "kvtide/prefix_hasher.hpp"

#include "tests/support/ear.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kvtide::test {

inline options small_options() {
  auto out = options{};
  out.blocks_per_chunk = 1;
  out.host_bytes = 1 << 16;
  return out;
}

/// Keys of a prompt of 65 tokens: four chunks and a token.
inline std::vector<prefix_hash> keys_of(std::int32_t text) {
  const auto prompt = std::vector<std::int32_t>(65, text);
  return prefix_hasher{16}.append(prompt.data(), prompt.size());
}

/// An engine with ten blocks of memory.
class small_replica {
public:
  explicit small_replica(std::shared_ptr<publisher> teller)
    : memory_(10 * 1'024) {
    auto opts = small_options();
    opts.publisher = std::move(teller);
    runtime_.emplace(runtime::start(opts).value());
    engine_.emplace(*runtime_);
    gpu_.emplace(runtime_->local_rank(0));
    auto kv = kv_memory{};
    kv.tensors
      = {{memory_.data(), memory_.size(), memory_kind::host, 10, 1'024, 1'024}};
    kv.references = {{0, 0, 0, 0, 1'024}};
    EXPECT_TRUE(gpu_->register_kv(kv, patience));
  }

  /// Computes a prompt and stores it.
  void serve(std::int32_t text) {
    const auto id = ++last_request_;
    runtime_->add({id, 65, 65});
    runtime_->extend({id, 0, keys_of(text), {}, {}});
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

/// Asks for a text until the answer is as wanted: what replicas say is under
/// way for a moment.
inline ::testing::AssertionResult
hears(router& asks, std::int32_t text,
      const std::function<bool(const replica_choice&)>& wanted) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline)
    if (wanted(asks.ask(keys_of(text))))
      return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "no such answer came";
}

} // namespace kvtide::test
