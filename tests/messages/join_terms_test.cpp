// SPDX-License-Identifier: Apache-2.0

#include "messages/join_terms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using ::testing::HasSubstr;
using ::testing::Not;

namespace kvtide {
namespace {

options two_groups() {
  auto out = options{};
  out.ranks = 4;
  out.groups = {{16, 0, false}, {32, 1024, true}};
  out.model_fingerprint = "llama";
  return out;
}

/// A field, how it becomes another one, and what the refusal says.
struct change {
  std::string name;
  std::function<void(join_terms&)> make;
  std::string says;
};

std::vector<change> changes() {
  return {
    {"ranks", [](join_terms& x) { x.ranks = 2; },
     "options.ranks is 4 at the scheduler and 2 at the rank"},
    {"groups", [](join_terms& x) { x.groups.pop_back(); },
     "the number of options.groups is 2 at the scheduler and 1 at the rank"},
    {"block", [](join_terms& x) { x.groups[1].tokens_per_block = 16; },
     "options.groups[1].tokens_per_block is 32 at the scheduler and 16"},
    {"window", [](join_terms& x) { x.groups[0].sliding_window_tokens = 8; },
     "options.groups[0].sliding_window_tokens is 0 at the scheduler and 8"},
    {"draft", [](join_terms& x) { x.groups[1].draft = false; },
     "options.groups[1].draft is 1 at the scheduler and 0"},
    {"chunk", [](join_terms& x) { x.blocks_per_chunk = 4; },
     "options.blocks_per_chunk is 8 at the scheduler and 4"},
    {"hash", [](join_terms& x) { x.tokens_per_hash = 32; },
     "options.tokens_per_hash is 16 at the scheduler and 32"},
    {"model", [](join_terms& x) { x.model_fingerprint = "qwen"; },
     "options.model_fingerprint is \"llama\" at the scheduler and \"qwen\""},
    {"rules", [](join_terms& x) { x.rules = rule_set::reference; },
     "options.rules is safe at the scheduler and reference"},
    {"delivery", [](join_terms& x) { x.delivery = plan_delivery::by_engine; },
     "options.delivery is direct at the scheduler and by_engine"},
    {"time", [](join_terms& x) { x.virtual_time = true; },
     "options.device == host_virtual is 0 at the scheduler and 1"},
  };
}

TEST(JoinTerms, FitWhateverTheRankAndItsLife) {
  const auto opts = two_groups();
  EXPECT_EQ(fault_of(terms_of(opts, 0, 1), terms_of(opts, 3, 2)).code,
            ec::none);
}

TEST(JoinTerms, NameTheFieldThatDiffersAndBothValues) {
  const auto ours = terms_of(two_groups(), 0, 1);
  for (const auto& what : changes()) {
    auto theirs = ours;
    what.make(theirs);
    const auto fault = fault_of(ours, theirs);
    EXPECT_EQ(fault.code, ec::invalid_options) << what.name;
    EXPECT_THAT(fault.text, HasSubstr(what.says));
  }
}

TEST(JoinTerms, SurviveTheWay) {
  auto sent = terms_of(two_groups(), 3, 0x123456789ABCDEF0u);
  const auto arrives = [&] {
    const auto bytes = encode_terms(sent);
    EXPECT_EQ(bytes, encode_terms(sent));
    const auto read = decode_terms(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read.value().rank, 3u);
    EXPECT_EQ(read.value().life, 0x123456789ABCDEF0u);
    EXPECT_EQ(fault_of(sent, read.value()).text, "");
  };
  arrives();
  for (const auto& what : changes()) {
    what.make(sent);
    arrives();
  }
}

TEST(JoinTerms, AreWhatTheOptionsSay) {
  auto opts = two_groups();
  opts.blocks_per_chunk = 3;
  opts.tokens_per_hash = 5;
  opts.rules = rule_set::reference_committed;
  opts.delivery = plan_delivery::by_engine;
  opts.device = device_kind::host_virtual;
  const auto terms = terms_of(opts, 2, 9);
  EXPECT_EQ(terms.ranks, 4u);
  ASSERT_EQ(terms.groups.size(), 2u);
  EXPECT_EQ(terms.groups[1].sliding_window_tokens, 1024);
  EXPECT_EQ(terms.blocks_per_chunk, 3);
  EXPECT_EQ(terms.tokens_per_hash, 5);
  EXPECT_EQ(terms.model_fingerprint, "llama");
  EXPECT_EQ(terms.rules, rule_set::reference_committed);
  EXPECT_EQ(terms.delivery, plan_delivery::by_engine);
  EXPECT_TRUE(terms.virtual_time);
}

TEST(JoinTerms, AreRefusedIfTheyWereCutOrHaveMore) {
  const auto bytes = encode_terms(terms_of(two_groups(), 3, 7));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_terms(bytes.substr(0, size))) << size;
  const auto longer = decode_terms(bytes + '\0');
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.failure().code, ec::invalid_argument);
  EXPECT_THAT(longer.failure().text, HasSubstr("damaged"));
}

// Else a few bytes would ask for gigabytes, or name no rule set.
TEST(JoinTerms, AreRefusedIfANumberIsTooLarge) {
  const auto bytes = encode_terms(terms_of(two_groups(), 3, 7));
  constexpr auto groups_at = std::size_t{4 + 8 + 4};
  const auto with = [&](std::size_t at, std::size_t count) {
    return decode_terms(std::string{bytes}.replace(
      at, count, std::string(count, static_cast<char>(0xFF))));
  };
  EXPECT_FALSE(with(groups_at, 4)) << "groups";
  EXPECT_FALSE(with(bytes.size() - 3, 1)) << "rules";
  EXPECT_FALSE(with(bytes.size() - 2, 1)) << "delivery";
  EXPECT_FALSE(with(bytes.size() - 1, 1)) << "virtual_time";
  EXPECT_FALSE(with(bytes.size() - 3 - 5 - 4, 4)) << "length of the model";
  EXPECT_TRUE(with(0, 4)) << "a rank that does not exist is the door's matter";
}

TEST(JoinTerms, SayLittleOfWhatAPeerWrote) {
  const auto ours = terms_of(two_groups(), 0, 1);
  auto theirs = ours;
  theirs.model_fingerprint = "\x1b[2J\n" + std::string(1'000'000, 'x');
  const auto text = fault_of(ours, theirs).text;
  EXPECT_LT(text.size(), 250u);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("\"?[2J?xxx"));
}

} // namespace
} // namespace kvtide
