// SPDX-License-Identifier: Apache-2.0

// What does the cache manager's decision cost for one lookup, without messages?
//
//   bench-lookup --benchmark_repetitions=9
//
// Arguments: chunks of the prompt. "Hit" finds all of them, "Miss" none of a
// pool of the same size.

#include "core/cache.hpp"
#include "core/rules.hpp"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

namespace {

using namespace kvtide;

constexpr std::uint32_t prompts = 64;

core::layout one_group() {
  auto opts = options{};
  opts.blocks_per_chunk = 1;
  return core::make_layout(opts).value();
}

/// The keys of prompt number `prompt`.
core::key_list keys_of(std::uint64_t prompt, std::uint32_t chunks) {
  auto out = core::key_list{0, one_group().model};
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const std::uint64_t name[] = {prompt, i};
    out.append(prefix_hash{name, sizeof(name)});
  }
  return out;
}

/// A pool that holds every chunk of `prompts` prompts.
void fill(core::cache& pool, std::uint32_t chunks) {
  for (std::uint64_t prompt = 0; prompt < prompts; ++prompt) {
    const auto keys = keys_of(prompt, chunks);
    auto offer = core::store_offer{};
    offer.keys = {keys.view()};
    auto stored = std::vector<chunk_key>{};
    for (std::uint32_t i = 0; i < chunks; ++i) {
      auto candidate = core::store_candidate{};
      candidate.key = keys[i];
      candidate.chunk = i;
      candidate.end_tokens = static_cast<token_count>(i + 1) * 16;
      offer.candidates.push_back(candidate);
      stored.push_back(keys[i]);
    }
    (void)pool.prepare_stores(std::vector{offer});
    (void)pool.complete_store(stored, true);
  }
}

void lookup(benchmark::State& state, bool hit) {
  const auto chunks = static_cast<std::uint32_t>(state.range(0));
  auto pool = core::cache{{prompts * chunks, eviction_policy::lru, 1, true},
                          one_group(),
                          core::safe_rules};
  fill(pool, chunks);
  auto queries = std::vector<core::search_query>{};
  for (std::uint64_t i = 0; i < prompts; ++i) {
    auto query = core::search_query{};
    query.keys = {keys_of(hit ? i : prompts + i, chunks).view()};
    query.known = static_cast<token_count>(chunks) * 16 + 1;
    queries.push_back(std::move(query));
  }
  auto next = std::size_t{0};
  for (auto _ : state)
    benchmark::DoNotOptimize(pool.search(queries[next++ % prompts]));
}

BENCHMARK_CAPTURE(lookup, Hit, true)->Arg(64)->Arg(512)->Arg(8192);
BENCHMARK_CAPTURE(lookup, Miss, false)->Arg(64)->Arg(512)->Arg(8192);

} // namespace
