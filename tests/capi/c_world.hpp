// SPDX-License-Identifier: Apache-2.0

/// @file
/// An engine that speaks C: one rank, one group, blocks of four tokens in host
/// memory. Sees nothing of kvtide but kvtide.h.

#pragma once

#include "kvtide/kvtide.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::test {

/// Only a broken runtime is waited for so long.
inline constexpr std::int64_t patience_ms = 20'000;

struct batch_deleter {
  void operator()(kvtide_batch* batch) const noexcept {
    kvtide_batch_free(batch);
  }
};

using batch = std::unique_ptr<kvtide_batch, batch_deleter>;

struct runtime_deleter {
  void operator()(kvtide_runtime* runtime) const noexcept {
    kvtide_destroy(runtime);
  }
};

/// A struct of C whose size is set and that is zero otherwise.
template <class T>
T sized() {
  auto out = T{};
  out.struct_size = sizeof(T);
  return out;
}

/// The only event of a batch.
inline const kvtide_event& only(const batch& from) {
  EXPECT_EQ(kvtide_batch_size(from.get()), 1u);
  return *kvtide_batch_at(from.get(), 0);
}

/// What went wrong, for a failed expectation.
inline std::string why(kvtide_status status) {
  return std::string{kvtide_status_name(status)} + ": " + kvtide_last_error();
}

/// For EXPECT_OK: a failure shows the call and the sentence.
inline ::testing::AssertionResult is_ok(const char* call,
                                        kvtide_status status) {
  if (status == KVTIDE_OK)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << call << "\n" << why(status);
}

#define EXPECT_OK(call) EXPECT_PRED_FORMAT1(::kvtide::test::is_ok, call)

class CWorld : public ::testing::Test {
protected:
  static constexpr std::size_t block_bytes = 64;
  static constexpr std::uint32_t blocks = 16;
  static constexpr std::int32_t block_tokens = 4;

  CWorld() {
    EXPECT_OK(kvtide_group_options_init(&group));
    group.tokens_per_block = block_tokens;
    EXPECT_OK(kvtide_options_init(&opts));
    opts.groups = &group;
    opts.group_count = 1;
    opts.blocks_per_chunk = 1;
    opts.tokens_per_hash = block_tokens;
    opts.model_fingerprint = "toy";
    opts.host_bytes = 64 * block_bytes;
    tensor.base = gpu.data();
    tensor.bytes = gpu.size();
    tensor.blocks = blocks;
    tensor.block_stride = tensor.page_bytes = block_bytes;
    reference.bytes = block_bytes;
    EXPECT_OK(kvtide_kv_memory_init(&memory));
    memory.tensors = &tensor;
    memory.tensor_count = 1;
    memory.references = &reference;
    memory.reference_count = 1;
    memory.model_fingerprint = "toy";
  }

  void start() {
    rt.reset();
    kvtide_runtime* made = nullptr;
    ASSERT_EQ(kvtide_start(&opts, &made), KVTIDE_OK) << kvtide_last_error();
    rt.reset(made);
    ASSERT_EQ(kvtide_local_rank(made, 0, &rank), KVTIDE_OK);
  }

  /// Starts and registers.
  void serve() {
    ASSERT_NO_FATAL_FAILURE(start());
    EXPECT_OK(kvtide_rank_register_kv(rank, &memory));
    const auto answer = on_rank(KVTIDE_EVENT_KV_REGISTERED);
    EXPECT_GT(only(answer).as.registered.slots, 0u);
  }

  batch on_rank(std::int32_t kind) {
    kvtide_batch* out = nullptr;
    EXPECT_OK(kvtide_rank_await(rank, kind, patience_ms, &out));
    return batch{out};
  }

  batch answer_to(std::uint64_t ticket) {
    kvtide_batch* out = nullptr;
    EXPECT_OK(kvtide_await(rt.get(), ticket, patience_ms, &out));
    return batch{out};
  }

  /// The next event of a kind that has no ticket.
  batch on_engine(std::int32_t kind) {
    for (;;) {
      kvtide_batch* out = nullptr;
      const auto status = kvtide_wait(rt.get(), patience_ms);
      EXPECT_EQ(status, KVTIDE_OK) << "waiting for " << kind;
      if (status != KVTIDE_OK)
        return {};
      EXPECT_OK(kvtide_poll(rt.get(), &out));
      auto made = batch{out};
      for (std::size_t i = 0; i < kvtide_batch_size(out); ++i)
        if (kvtide_batch_at(out, i)->kind == kind)
          return made;
    }
  }

  void add(std::uint64_t request, std::int64_t tokens, std::uint32_t keys) {
    auto call = sized<kvtide_add_request>();
    EXPECT_OK(kvtide_add_request_init(&call));
    call.request = request;
    call.prompt_tokens = call.known_tokens = tokens;
    EXPECT_OK(kvtide_add(rt.get(), &call, nullptr));
    auto more = sized<kvtide_extend_keys>();
    more.request = request;
    const auto hashes = std::string{"abcdefghijklmnopqrstuvwxyz"};
    more.hashes = hashes.data();
    more.hash_bytes = 2;
    more.hash_count = keys;
    EXPECT_OK(kvtide_extend(rt.get(), &more, nullptr));
  }

  /// @param compute runs when compute may
  /// @returns the answer to the step
  batch run_step(const std::vector<kvtide_step_row>& rows,
                 const std::function<void()>& compute = {}) {
    auto call = sized<kvtide_step_call>();
    call.step = ++last_step;
    call.rows = rows.data();
    call.row_count = rows.size();
    auto ticket = std::uint64_t{0};
    EXPECT_OK(kvtide_step(rt.get(), &call, &ticket));
    auto plan = answer_to(ticket);
    EXPECT_OK(kvtide_rank_begin_step(rank, last_step, nullptr, 0));
    const auto ready = on_rank(KVTIDE_EVENT_STEP_READY);
    EXPECT_EQ(only(ready).as.ready.step, last_step);
    if (compute)
      compute();
    EXPECT_OK(kvtide_rank_end_step(rank, last_step, nullptr, 0));
    return plan;
  }

  kvtide_step_row row(std::uint64_t request, std::int64_t computed,
                      std::int64_t tokens, const kvtide_block_list& table) {
    auto out = sized<kvtide_step_row>();
    out.request = request;
    out.kind = KVTIDE_ROW_FRESH;
    out.new_blocks = &table;
    out.new_block_list_count = 1;
    out.computed = computed;
    out.scheduled = tokens - computed;
    out.known = tokens;
    return out;
  }

  kvtide_stats stats() {
    auto ticket = std::uint64_t{0};
    EXPECT_OK(kvtide_get_stats(rt.get(), &ticket));
    return *only(answer_to(ticket)).as.stats;
  }

  kvtide_group_options group = sized<kvtide_group_options>();
  kvtide_options opts = sized<kvtide_options>();
  std::vector<unsigned char> gpu
    = std::vector<unsigned char>(blocks * block_bytes);
  kvtide_kv_tensor tensor = sized<kvtide_kv_tensor>();
  kvtide_kv_reference reference = sized<kvtide_kv_reference>();
  kvtide_kv_memory memory = sized<kvtide_kv_memory>();
  std::unique_ptr<kvtide_runtime, runtime_deleter> rt;
  kvtide_rank* rank = nullptr;
  std::uint64_t last_step = 0;
};

} // namespace kvtide::test
