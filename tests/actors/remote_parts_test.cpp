// SPDX-License-Identifier: Apache-2.0

/// @file
/// The stores of a step on their way to ranks of other processes.

#include "tests/actors/remote_fixture.hpp"

namespace kvtide {
namespace {

using ::testing::ElementsAre;

/// Chunks of so many blocks that a message holds three of them.
class RemoteParts : public test::remote_fixture {
protected:
  static constexpr std::int32_t blocks = 2048;
  static constexpr token_count tokens = 4 * blocks;

  static options large_chunks() {
    auto out = test::plain_options();
    out.blocks_per_chunk = blocks;
    out.tokens_per_hash = 4 * blocks;
    return out;
  }

  /// A request of one chunk, and its row in a step that stores it.
  step_row first_step_of(request_id id) {
    auto how = add_request{};
    how.request = id;
    how.prompt_tokens = how.known_tokens = tokens + 1;
    call(msg::add{0, how});
    auto keys = extend_keys{};
    keys.request = id;
    keys.hashes = {hash_of(std::string(1, static_cast<char>(id)), 0)};
    call(msg::extend{0, keys});
    auto own = std::vector<block_id>(blocks);
    for (auto& x : own)
      x = ++last_block;
    return fresh(id, std::move(own), tokens);
  }

  void step_of_six() {
    auto rows = std::vector<step_row>{};
    for (request_id id = 'a'; id < 'g'; ++id)
      rows.push_back(first_step_of(id));
    (void)step(std::move(rows));
  }

  block_id last_block = 0;
};

TEST_F(RemoteParts, CNT_02_LongStoresComeInPartsToAllRanks) {
  start_joined(2, large_chunks());
  step_of_six();
  for (rank_id rank = 0; rank < 2; ++rank)
    EXPECT_THAT(heard(rank),
                ElementsAre("step 1 L F", "stores 0 1 2", "stores 3 4 5"));
}

TEST_F(RemoteParts, InsideOneProcessTheyAreOneMessage) {
  start_joined(1, large_chunks());
  step_of_six();
  EXPECT_THAT(heard(0), ElementsAre("step 1 L F", "stores 0 1 2 3 4 5"));
}

} // namespace
} // namespace kvtide
