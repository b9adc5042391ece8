// SPDX-License-Identifier: Apache-2.0

/// @file
/// Many short lives under pressure: an engine that hands blocks out again at
/// once, copies that end in any order, fail or come late, aborts, preemptions
/// and resets. No copy may move wrong bytes, and nothing may be left over.

#include "tests/support/test_system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using ::testing::IsEmpty;

namespace kvtide::test {
namespace {

struct setup {
  const char* name;
  std::uint32_t ranks = 1;
  /// Width of a second group's window; zero for no such group.
  std::int32_t window = 0;
  std::int32_t blocks_per_chunk = 1;
  eviction_policy policy = eviction_policy::lru;
  bool failures = false;
  rule_set rules = rule_set::safe;
};

options options_of(const setup& how) {
  auto out = plain_options(how.rules);
  out.ranks = how.ranks;
  out.blocks_per_chunk = how.blocks_per_chunk;
  out.policy = how.policy;
  if (how.window > 0) {
    out.groups.resize(2);
    out.groups[1].tokens_per_block = 4;
    out.groups[1].sliding_window_tokens = how.window;
  }
  return out;
}

class engine {
public:
  engine(const setup& how, std::uint32_t seed)
    : how_(how), groups_(how.window > 0 ? 2 : 1), sys_(options_of(how), 24),
      random_(seed) {
    for (block_id block = 60; block > 0; --block)
      free_.push_back(block);
  }

  void run(int turns) {
    for (auto i = 0; i < turns; ++i) {
      if (one_in(2))
        arrive();
      turn_once();
      end_copies();
      if (one_in(60))
        (void)sys_.reset();
      if (how_.failures && one_in(80))
        sys_.pass_deadline();
      hear();
    }
    for (auto i = 0; i < 400 && !(alive_.empty() && sys_.empty()); ++i) {
      for (auto id : ids())
        if (alive_.at(id).state != phase::loading)
          end(id, finish_reason::abort);
      (void)sys_.step();
      for (rank_id r = 0; r < how_.ranks; ++r)
        for (auto jobs = sys_.copies(r); !jobs.empty(); jobs = sys_.copies(r))
          sys_.done(jobs.front(), {r});
      sys_.pass(std::chrono::milliseconds{1});
      hear();
    }
  }

  [[nodiscard]] test_system& system() {
    return sys_;
  }

  [[nodiscard]] std::size_t free_blocks() const {
    return free_.size();
  }

private:
  enum class phase { waiting, loading, running };

  struct life {
    phase state = phase::waiting;
    token_count tokens = 0;
    token_count end = 0;
    /// With holes where a block left the window.
    block_lists table;
  };

  bool one_in(std::uint32_t n) {
    return random_() % n == 0;
  }

  token_count between(token_count low, token_count high) {
    return low + static_cast<token_count>(random_()) % (high - low + 1);
  }

  std::vector<request_id> ids() const {
    auto out = std::vector<request_id>{};
    for (const auto& [id, x] : alive_)
      out.push_back(id);
    return out;
  }

  void arrive() {
    if (alive_.size() > 6)
      return;
    const auto id = ++last_;
    auto with = add_with{};
    if (last_ > 1'003 && !one_in(4)) {
      with.like = id - static_cast<request_id>(between(1, 3));
      with.shared = std::min(lengths_[with.like], between(4, 24));
    }
    const auto tokens = std::max<token_count>(with.shared + 1, between(1, 30));
    lengths_[id] = tokens;
    sys_.add(id, tokens, with);
    auto& x = alive_[id];
    x.tokens = tokens;
    x.end = tokens + between(1, 16);
    x.table.resize(groups_);
  }

  /// @returns false if there are too few
  bool grow(life& x, token_count tokens, block_lists& added) {
    const auto need = static_cast<std::size_t>((tokens + 3) / 4);
    auto missing = std::size_t{0};
    for (const auto& list : x.table)
      missing += need > list.size() ? need - list.size() : 0;
    if (missing > free_.size())
      return false;
    added.assign(groups_, {});
    for (std::size_t g = 0; g < groups_; ++g)
      while (x.table[g].size() < need) {
        x.table[g].push_back(free_.back());
        added[g].push_back(free_.back());
        free_.pop_back();
      }
    return true;
  }

  void give_back(life& x, std::vector<block_id> held = {}) {
    for (auto& list : x.table) {
      for (auto block : list)
        if (block != no_block
            && std::find(held.begin(), held.end(), block) == held.end())
          free_.push_back(block);
      list.clear();
    }
  }

  /// Blocks that no later token looks at are free at once.
  void slide(life& x, token_count computed) {
    if (groups_ < 2)
      return;
    const auto out = std::max<token_count>(0, computed - how_.window + 1) / 4;
    for (token_count i = 0; i < out; ++i) {
      auto& block = x.table[1][static_cast<std::size_t>(i)];
      if (block != no_block)
        free_.push_back(block);
      block = no_block;
    }
  }

  void admit(request_id id, life& x, turn& now) {
    const auto hit = sys_.lookup(id);
    if (!hit)
      return;
    auto added = block_lists{};
    if (!grow(x, *hit > 0 ? x.tokens : between(1, x.tokens), added)) {
      if (sys_.promise(id) != 0 && one_in(2))
        sys_.decline(sys_.promise(id));
      return;
    }
    if (*hit > 0 && !one_in(8)) {
      slide(x, *hit); // What lies before the window is not loaded.
      x.state = phase::loading;
      sys_.alloc(id, x.table, *hit);
      return;
    }
    schedule(id, x, now, x.table);
  }

  void schedule(request_id id, life& x, turn& now, const block_lists& blocks) {
    const auto room = static_cast<token_count>(4 * x.table[0].size());
    const auto done = sys_.computed(id);
    const auto tokens = std::min(room, x.tokens) - done;
    if (tokens <= 0 && blocks.empty())
      return;
    x.state = phase::running;
    now.run.push_back({id, std::max<token_count>(0, tokens), blocks});
    scheduled_.push_back(id);
  }

  void turn_once() {
    auto now = turn{};
    scheduled_.clear();
    for (auto id : ids()) {
      auto& x = alive_.at(id);
      if (x.state == phase::running && one_in(25)) {
        now.preempt.push_back(id);
        give_back(x);
        x.state = phase::waiting;
        fresh_from_load_.erase(id);
      }
    }
    for (auto id : ids()) {
      auto& x = alive_.at(id);
      const auto preempted
        = std::find(now.preempt.begin(), now.preempt.end(), id)
       != now.preempt.end();
      if (preempted || x.state == phase::loading || one_in(5))
        continue;
      if (x.state == phase::waiting) {
        admit(id, x, now);
      } else if (fresh_from_load_.erase(id) > 0) {
        schedule(id, x, now, x.table);
      } else {
        auto added = block_lists{};
        slide(x, sys_.computed(id));
        if (grow(x, std::min(x.tokens, sys_.computed(id) + between(1, 12)),
                 added))
          schedule(id, x, now, added);
      }
    }
    (void)sys_.step(now);
    for (auto id : scheduled_) {
      auto& x = alive_.at(id);
      if (sys_.computed(id) < x.tokens)
        continue;
      sys_.out(id, 1);
      x.tokens += 1;
      lengths_[id] = x.tokens;
      if (x.tokens >= x.end)
        end(id, one_in(2) ? finish_reason::stop : finish_reason::length);
    }
    for (auto id : ids())
      if (one_in(40))
        end(id, one_in(3) ? finish_reason::error : finish_reason::abort);
  }

  void end(request_id id, finish_reason reason) {
    auto& x = alive_.at(id);
    give_back(x, sys_.finish(id, reason));
    alive_.erase(id);
    fresh_from_load_.erase(id);
  }

  void end_copies() {
    for (rank_id r = 0; r < how_.ranks; ++r)
      for (auto n = random_() % 4; n > 0; --n) {
        const auto jobs = sys_.copies(r);
        if (jobs.empty())
          break;
        const auto job = jobs[random_() % jobs.size()];
        sys_.done(job, {r, how_.failures && one_in(10), 0});
      }
  }

  /// "kind request ... [blocks] ..."
  void hear() {
    for (const auto& line : sys_.notices()) {
      auto words = std::istringstream{line};
      auto kind = std::string{};
      request_id id = 0;
      words >> kind >> id;
      const auto open = line.find('[');
      auto blocks = std::vector<block_id>{};
      if (open != std::string::npos) {
        auto list = std::istringstream{line.substr(open + 1)};
        for (block_id block = 0; list >> block;)
          blocks.push_back(block);
      }
      const auto found = alive_.find(id);
      if (kind == "released") {
        free_.insert(free_.end(), blocks.begin(), blocks.end());
      } else if (found == alive_.end()) {
        continue; // Failed at once, and ended in the same turn.
      } else if (kind == "load_done") {
        auto& x = found->second;
        x.state = phase::running;
        fresh_from_load_[id] = true;
      } else if (kind == "load_failed") {
        auto& x = found->second;
        // Starts again; where a copy may still run, without its blocks.
        give_back(x, line.find(" new") != std::string::npos
                       ? blocks
                       : std::vector<block_id>{});
        x.state = phase::waiting;
        sys_.set_computed(id, 0);
      } else {
        ADD_FAILURE() << line;
      }
    }
  }

  setup how_;
  std::size_t groups_;
  test_system sys_;
  std::mt19937 random_;
  /// The last one freed is the first one handed out.
  std::vector<block_id> free_;
  std::map<request_id, life> alive_;
  std::map<request_id, token_count> lengths_;
  std::map<request_id, bool> fresh_from_load_;
  std::vector<request_id> scheduled_;
  request_id last_ = 1'000;
};

constexpr setup setups[] = {
  {"plain"},
  {"two_ranks", 2},
  {"chunks_of_three", 1, 0, 3},
  {"arc", 1, 0, 1, eviction_policy::arc},
  {"window", 1, 8},
  {"window_in_chunks", 1, 10, 2},
  {"failures", 1, 0, 1, eviction_policy::lru, true},
  {"failures_on_two_ranks", 2, 0, 2, eviction_policy::lru, true},
  {"failures_with_window", 2, 8, 1, eviction_policy::lru, true},
};

std::ostream& operator<<(std::ostream& out, const setup& x) {
  return out << x.name;
}

class RandomLives : public ::testing::TestWithParam<setup> {};

TEST_P(RandomLives, MoveNoWrongBytesAndLeaveNothing) {
  auto sum = stats{};
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto uut = engine{GetParam(), seed};
    uut.run(150);
    auto& sys = uut.system();
    ASSERT_THAT(sys.wrong_bytes(), IsEmpty());
    ASSERT_TRUE(sys.empty());
    ASSERT_EQ(uut.free_blocks(), 60u);
    const auto now = sys.counters();
    ASSERT_EQ(now.order_errors, 0u);
    sum.load_jobs += now.load_jobs;
    sum.flushed_jobs += now.flushed_jobs;
    sum.evicted_chunks += now.evicted_chunks;
    sum.deferrals += now.deferrals;
    sum.failed_jobs += now.failed_jobs;
  }
  // All of it was tried.
  EXPECT_GT(sum.load_jobs, 0u);
  EXPECT_GT(sum.flushed_jobs, 0u);
  EXPECT_GT(sum.evicted_chunks, 0u);
  EXPECT_GT(sum.deferrals, 0u);
  EXPECT_EQ(sum.failed_jobs > 0, GetParam().failures);
}

INSTANTIATE_TEST_SUITE_P(Setups, RandomLives, ::testing::ValuesIn(setups),
                         [](const ::testing::TestParamInfo<setup>& row) {
                           return std::string{row.param.name};
                         });

// So the check can fail.
TEST(RandomLivesOfTheRecordedRules, MoveWrongBytes) {
  auto wrong = std::size_t{0};
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    auto uut = engine{
      {"reference", 1, 0, 1, eviction_policy::lru, false, rule_set::reference},
      seed};
    uut.run(150);
    wrong += uut.system().wrong_bytes().size();
  }
  EXPECT_GT(wrong, 0u);
}

} // namespace
} // namespace kvtide::test
