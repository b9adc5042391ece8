// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/trouble.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace kvtide::replay {
namespace {

const std::vector<std::uint64_t> no_ids;

sequence make(request_id id) {
  auto res = sequence{token_text{no_ids, {{0, id}}, 16}};
  res.id = id;
  res.prompt = 10;
  res.known = 10;
  res.output = 20;
  return res;
}

TEST(Trouble, LeavesEverybodyAloneWithoutARate) {
  auto uut = trouble{1, 0};
  for (auto id = request_id{1}; id < 100; ++id)
    uut.consider(make(id));
  EXPECT_TRUE(uut.doomed().empty());
}

TEST(Trouble, StrikesInEveryPhase) {
  auto uut = trouble{1, 0.3};
  auto struck = std::set<phase>{};
  for (auto id = request_id{1}; id < 300; ++id) {
    auto seq = make(id);
    uut.consider(seq);
    const auto wait = [&](phase expected) {
      ASSERT_EQ(seq.where(), expected);
      for (auto round = 0; round < 4; ++round)
        for (const auto when : {moment::before_plan, moment::after_allocation,
                                moment::after_issue})
          if (uut.strikes(seq, when))
            struck.insert(seq.where());
    };
    wait(phase::queued);
    seq.deferred = true;
    wait(phase::deferred);
    seq.deferred = seq.waiting = false;
    seq.loading = true;
    wait(phase::loading);
    seq.loading = false;
    wait(phase::prefill);
    seq.known = 11;
    wait(phase::decode);
    seq.waiting = seq.preempted = true;
    wait(phase::preempted);
  }
  EXPECT_EQ(struck.size(), live_phases);
}

TEST(Trouble, StrikesTheSameRequestsForTheSameSeed) {
  const auto doomed = [](std::uint64_t seed) {
    auto uut = trouble{seed, 0.02};
    for (auto id = request_id{1}; id < 200; ++id)
      uut.consider(make(id));
    return uut.doomed();
  };
  EXPECT_EQ(doomed(5), doomed(5));
  EXPECT_NE(doomed(5), doomed(6));
}

TEST(Trouble, ForgetsWhoEnded) {
  auto uut = trouble{1, 1};
  uut.consider(make(1));
  uut.consider(make(2));
  uut.forget(1);
  uut.forget(77);
  EXPECT_EQ(uut.doomed(), std::vector<request_id>{2});
}

} // namespace
} // namespace kvtide::replay
