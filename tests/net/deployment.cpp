// SPDX-License-Identifier: Apache-2.0

#include "tests/net/deployment.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

namespace kvtide::test {

namespace {

constexpr std::size_t block_bytes = 64;
constexpr std::uint64_t blocks = 8;
constexpr token_count block_tokens = 4;

} // namespace

// -- one rank -----------------------------------------------------------------

played_side::played_side(rank& side, rank_id id)
  : side_(&side), id_(id), gpu_(blocks * block_bytes) {
  // nop
}

void played_side::register_memory() {
  auto kv = kv_memory{};
  kv.rank = id_;
  kv.tensors.push_back({});
  kv.tensors.back().base = gpu_.data();
  kv.tensors.back().bytes = gpu_.size();
  kv.tensors.back().blocks = blocks;
  kv.tensors.back().block_stride = block_bytes;
  kv.tensors.back().page_bytes = block_bytes;
  kv.references.push_back({0, 0, 0, 0, block_bytes});
  side_->register_kv(std::move(kv));
  const auto answer = hear<kv_registered>();
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->reason.code, ec::none) << answer->reason.text;
}

error played_side::begin(step_id step, std::string plan) {
  side_->begin_step(step, std::move(plan));
  const auto ready = hear<step_ready>();
  if (!ready)
    return {ec::timeout, "the step is not ready"};
  EXPECT_EQ(ready->step, step);
  return {};
}

void played_side::end(step_id step) {
  side_->end_step(step, {});
}

// -- the whole ----------------------------------------------------------------

deployment::deployment() {
  shared.groups.front().tokens_per_block = block_tokens;
  shared.blocks_per_chunk = 1;
  shared.tokens_per_hash = block_tokens;
  shared.host_bytes = 16 * block_bytes;
  shared.ranks = 2;
  engine_side.listen = "127.0.0.1:0";
}

void deployment::start_engine() {
  auto made = make_network(engine_side);
  ASSERT_TRUE(made) << made.failure().text;
  engine_network = made.value();
  auto opts = shared;
  opts.network = engine_network;
  opts.workers.resize(2);
  opts.workers[1].where = worker_place::kind::dials_in;
  if (engine_dials) {
    opts.workers[1].where = worker_place::kind::dialed;
    opts.workers[1].address = address_of(*worker_network);
  }
  auto started = runtime::start(opts);
  ASSERT_TRUE(started) << started.failure().text;
  engine.emplace(std::move(started).value());
  here.emplace(engine->local_rank(0), 0);
  here->register_memory();
}

void deployment::start_worker() {
  auto made = make_network(worker_side);
  ASSERT_TRUE(made) << made.failure().text;
  worker_network = made.value();
  auto opts = worker_options{};
  opts.shared = shared;
  opts.shared.network = worker_network;
  opts.ranks = {1};
  if (!engine_dials)
    opts.scheduler = address_of(*engine_network);
  auto started = worker::start(opts);
  ASSERT_TRUE(started) << started.failure().text;
  far.emplace(std::move(started).value());
  there.emplace(far->local_rank(1), 1);
  there->register_memory();
}

void deployment::await_rank() {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    engine->get_stats();
    const auto answer = hear<stats_answer>();
    ASSERT_TRUE(answer);
    if (answer->values.host_slots > 0)
      return;
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

void deployment::run_step(step_call call) {
  call.step = ++step;
  engine->step(std::move(call));
  ASSERT_TRUE(hear<step_plan>());
  for (auto* side : {&here, &there})
    if (*side) {
      ASSERT_EQ((*side)->begin(step).code, ec::none);
      (*side)->end(step);
    }
}

void deployment::serve() {
  const auto hashes
    = std::vector<prefix_hash>{prefix_hash{"a", 1}, prefix_hash{"b", 1}};
  const auto tokens = 2 * block_tokens;
  const auto add = [&](token_count prompt) {
    auto call = add_request{};
    call.request = ++last_request;
    call.prompt_tokens = call.known_tokens = prompt;
    engine->add(call);
    engine->extend({call.request, 0, hashes, {}, {}});
  };
  add(tokens);
  run_step({0,
            {{last_request, row_kind::fresh, {{1, 2}}, 0, tokens, tokens}},
            {},
            {}});
  engine->finish({last_request, finish_reason::stop, tokens, tokens});
  run_step({});
  // Stored when both ranks have said so: it is not known by which step.
  const auto deadline = std::chrono::steady_clock::now() + patience;
  add(tokens + 1);
  for (;;) {
    engine->lookup({{last_request, 0, tokens + 1}});
    const auto answer = hear<lookup_answer>();
    ASSERT_TRUE(answer);
    const auto& hit = answer->hits.front();
    if (!hit.ask_again && hit.tokens == tokens) {
      engine->decline(hit.promise);
      break;
    }
    if (hit.promise != 0)
      engine->decline(hit.promise);
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    run_step({});
  }
  engine->finish({last_request, finish_reason::abort, tokens + 1, 0});
  run_step({});
}

} // namespace kvtide::test
