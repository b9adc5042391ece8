// SPDX-License-Identifier: Apache-2.0

/// @file
/// Random pools: what the safe search answers can be loaded, and is the most
/// that can.

#include "core/search.hpp"
#include "tests/core/search_world.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace kvtide::core {
namespace {

/// What a random pool has of one chunk.
struct content {
  bool ready = false;
  bool pending = false;
  token_count first_token = 0;
};

using contents = std::vector<std::vector<content>>;

contents fill_at_random(search_world& world, bool with_pending) {
  auto out = contents{};
  for (group_id group = 0; group < world.shape().groups.size(); ++group) {
    const auto& shape = world.shape().groups[group];
    out.emplace_back();
    const auto keys = world.in().keys[group].size();
    for (std::uint32_t chunk = 0; chunk < keys; ++chunk) {
      auto what = content{};
      const auto dice = *rc::gen::inRange(0, 12);
      const auto start = token_count{chunk} * shape.chunk_tokens;
      if (dice == 1 && with_pending) {
        what.pending = true;
        world.begin_store(group, chunk);
      } else if (dice > 1) {
        what.ready = true;
        if (dice == 2 && shape.sliding())
          what.first_token
            = start + *rc::gen::inRange<token_count>(0, shape.chunk_tokens);
        world.put(group, chunk, what.first_token);
      }
      out.back().push_back(what);
    }
  }
  return out;
}

/// Whether every token that a load up to `end` reads is there (R4, R13).
bool readable(const search_world& world, const contents& what,
              token_count local, token_count end) {
  for (group_id group = 0; group < what.size(); ++group) {
    const auto& shape = world.shape().groups[group];
    for (auto token = local; token < end; ++token) {
      if (shape.sliding() && token < end - shape.window_tokens + 1)
        continue;
      const auto chunk = static_cast<std::size_t>(token / shape.chunk_tokens);
      if (chunk >= what[group].size() || !what[group][chunk].ready
          || token < what[group][chunk].first_token)
        return false;
    }
  }
  return true;
}

/// Whether each sliding group has a run of its window's chunks, or a shorter
/// one from the start, where the hit ends (C4).
bool has_runs(const search_world& world, const contents& what,
              token_count local, token_count end) {
  for (group_id group = 0; group < what.size(); ++group) {
    const auto& shape = world.shape().groups[group];
    if (!shape.sliding())
      continue;
    const auto first = static_cast<std::size_t>(local / shape.chunk_tokens);
    auto at = static_cast<std::size_t>((end + shape.chunk_tokens - 1)
                                       / shape.chunk_tokens);
    for (auto run = std::size_t{0}; at > first && run < shape.window_chunks;
         ++run)
      if (--at >= what[group].size() || !what[group][at].ready)
        return false;
  }
  return true;
}

/// The longest end that a search may answer, tried one by one.
token_count longest(const search_world& world, const contents& what,
                    const search_input& in) {
  const auto chunk = world.shape().groups[0].chunk_tokens;
  for (auto end = in.known - (world.shape().any_sliding ? 1 : 0);
       end >= in.local + chunk; --end)
    if (readable(world, what, in.local, end)
        && has_runs(world, what, in.local, end))
      return end;
  return in.local;
}

std::vector<group_options> any_groups(bool same_size, bool drafts) {
  auto out = std::vector<group_options>{};
  const auto count = *rc::gen::inRange(1, 4);
  for (auto at = 0; at < count; ++at)
    out.push_back({same_size ? 4 : *rc::gen::element(4, 8, 16),
                   *rc::gen::element(0, 0, 1, 3, 4, 7, 8, 13, 16),
                   drafts && *rc::gen::arbitrary<bool>()});
  return out;
}

std::unique_ptr<search_world> any_world(bool same_size, bool drafts) {
  return std::make_unique<search_world>(
    search_layout(any_groups(same_size, drafts)), safe_rules,
    *rc::gen::inRange<token_count>(0, 60));
}

RC_GTEST_PROP(SearchProperty, AnswersTheMostThatCanBeLoaded, ()) {
  const auto world = any_world(true, false);
  world->in().local = *rc::gen::inRange<token_count>(0, 20);
  const auto with_pending = *rc::gen::arbitrary<bool>();
  const auto what = fill_at_random(*world, with_pending);
  world->in().ignore_pending = with_pending;
  const auto& in = world->in();
  const auto got = world->run();
  RC_ASSERT(got.has_value());
  // R16 comes last: one token is left to compute.
  const auto most = longest(*world, what, in) - in.local;
  const auto allowed = std::max<token_count>(0, in.known - 1 - in.local);
  RC_ASSERT(*got == std::min(most, allowed));
}

RC_GTEST_PROP(SearchProperty, NeverAnswersWhatCannotBeLoaded, ()) {
  const auto world = any_world(false, true);
  world->in().local = *rc::gen::inRange<token_count>(0, 20);
  const auto what = fill_at_random(*world, true);
  world->in().ignore_pending = *rc::gen::arbitrary<bool>();
  const auto& in = world->in();
  const auto got = world->run();
  if (in.ignore_pending)
    RC_ASSERT(got.has_value());
  if (!got || *got == 0)
    return;
  RC_ASSERT(*got > 0);
  RC_ASSERT(in.local + *got < in.known);
  RC_ASSERT(readable(*world, what, in.local, in.local + *got));
}

RC_GTEST_PROP(SearchProperty, ReadsExactlyTheChunksOfTheReadableTokens, ()) {
  const auto world = any_world(false, false);
  const auto& in = world->in();
  world->in().local = *rc::gen::inRange<token_count>(0, 20);
  const auto tokens = *rc::gen::inRange<token_count>(0, 40);
  const auto end = in.local + tokens;
  for (group_id group = 0; group < in.keys.size(); ++group) {
    const auto& shape = world->shape().groups[group];
    const auto range = world->reads(group, tokens);
    for (std::size_t chunk = 0; chunk < in.keys[group].size(); ++chunk) {
      const auto start = static_cast<token_count>(chunk) * shape.chunk_tokens;
      auto needed = false;
      for (auto token = start; token < start + shape.chunk_tokens; ++token)
        needed
          = needed
         || (token >= in.local && token < end
             && (!shape.sliding() || token >= end - shape.window_tokens + 1));
      RC_ASSERT(needed == (chunk >= range.first && chunk < range.last));
    }
  }
}

} // namespace
} // namespace kvtide::core
