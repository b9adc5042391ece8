// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/vector_reader.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace kvtide::conformance {
namespace {

const auto connector = std::string{
  R"({"op":"config","name":"x","level":"connector","groups":[{"tokens_per_block":4,"sliding_window_tokens":null,"eagle":false}],"blocks_per_chunk":1,"tokens_per_hash":4,"num_workers":2,"offload_prompt_only":false,"enable_prefix_caching":true,"host_chunks":64,"policy":"lru","store_threshold":1,"finished_rule":"num_tokens"})"
  "\n"};

const auto pool = std::string{
  R"({"op":"config","name":"x","level":"host_pool","host_chunks":4,"policy":"arc","store_threshold":1})"
  "\n"};

const auto worker = std::string{
  R"({"op":"config","name":"x","level":"worker","store_writer":true})"
  "\n"};

result<scenario> read(const std::string& text) {
  auto in = std::istringstream{text};
  return read_vector(in, "f");
}

/// What is wrong with a file; empty for nothing.
std::string fault(const std::string& text) {
  const auto file = read(text);
  return file ? "" : file.failure().text;
}

std::string replaced(std::string text, const std::string& what,
                     const std::string& with) {
  const auto pos = text.find(what);
  EXPECT_NE(pos, std::string::npos);
  return text.replace(pos, what.size(), with);
}

TEST(VectorReader, ReadsTheConfig) {
  const auto file = read(connector);
  ASSERT_TRUE(file.ok()) << file.failure().text;
  EXPECT_EQ(file.value().name, "x");
  EXPECT_EQ(file.value().line_count, 1U);
  const auto& content = std::get<connector_scenario>(file.value().content);
  EXPECT_EQ(content.opts.ranks, 2U);
  EXPECT_EQ(content.opts.rules, rule_set::reference);
  EXPECT_EQ(content.host_chunks, 64U);
  EXPECT_TRUE(content.lines.empty());
}

TEST(VectorReader, GivesRequestsIdsAndCountsTheirHashes) {
  const auto file = read(
    connector
    + R"({"op":"new_request","req":"b","num_prompt_tokens":4,"num_tokens":5,"hashes":{"b":["AB01"]}}
{"op":"lookup","req":"b","num_computed":0,"hashes":{"b":["00"],"a":["01"]}})");
  ASSERT_TRUE(file.ok()) << file.failure().text;
  const auto& content = std::get<connector_scenario>(file.value().content);
  EXPECT_EQ(content.names, (std::vector<std::string>{"b", "a"}));
  const auto& lookup = content.lines.at(1);
  EXPECT_EQ(std::get<lookup_row>(lookup.call).known_tokens, 5);
  ASSERT_EQ(lookup.hashes.size(), 2U);
  EXPECT_EQ(lookup.hashes[0].request, 1U);
  EXPECT_EQ(lookup.hashes[0].first, 0U);
  EXPECT_EQ(lookup.hashes[1].request, 0U);
  EXPECT_EQ(lookup.hashes[1].first, 1U);
}

TEST(VectorReader, TakesOnlyIntegersFromZeroOnAsCaps) {
  const auto cap = [](const std::string& value) {
    const auto file = read(
      connector
      + R"({"op":"new_request","req":"a","num_prompt_tokens":4,"num_tokens":4,"max_offload_tokens":)"
      + value + "}");
    EXPECT_TRUE(file.ok());
    const auto& content = std::get<connector_scenario>(file.value().content);
    return std::get<add_request>(content.lines.at(0).call).cap;
  };
  EXPECT_EQ(cap("0"), 0);
  EXPECT_EQ(cap("7"), 7);
  EXPECT_EQ(cap("18446744073709551615"), no_cap);
  for (const auto* value : {"-1", "null", "true", "\"7\"", "7.0", "[7]"})
    EXPECT_EQ(cap(value), no_cap) << value;
}

TEST(VectorReader, SortsSetsOfAnswersAndLowersKeys) {
  const auto file = read(
    connector
    + R"({"op":"take_events","expect":{"events":[{"stored":["bb/0","AA/0"]},{"removed":["bb/0","aa/0"]}]}})");
  ASSERT_TRUE(file.ok()) << file.failure().text;
  const auto& content = std::get<connector_scenario>(file.value().content);
  EXPECT_EQ(
    content.lines.at(0).want,
    json::parse(
      R"({"events":[{"stored":["aa/0","bb/0"]},{"removed":["bb/0","aa/0"]}]})"));
}

TEST(VectorReader, NamesFileAndLineOfAFault) {
  EXPECT_EQ(fault(connector
                  + R"({"op":"probe"})"
                    "\n"
                    R"({"op":"prob"})"),
            "f:3: unknown op 'prob' for level 'connector'");
}

TEST(VectorReader, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(fault(replaced(connector, "\"policy\"", "\"colour\":1,\"policy\"")),
            "f:1: unknown field 'colour'");
  EXPECT_EQ(fault(replaced(connector, "\"eagle\"", "\"owl\":1,\"eagle\"")),
            "f:1: unknown field 'groups[0].owl'");
  EXPECT_EQ(fault(pool + R"({"op":"step"})"),
            "f:2: unknown op 'step' for level 'host_pool'");
  EXPECT_EQ(fault(worker + R"({"op":"state"})"),
            "f:2: unknown op 'state' for level 'worker'");
  EXPECT_EQ(fault(pool + R"({"op":"touch","keys":[],"when":1})"),
            "f:2: unknown field 'when'");
  EXPECT_EQ(
    fault(
      pool
      + R"({"op":"lookup_key","key":"00/0","expect":{"result":"hit","why":1}})"),
    "f:2: unknown field 'expect.why'");
  EXPECT_EQ(fault(replaced(connector, "\"lru\"", "\"fifo\"")),
            "f:1: 'policy' is \"fifo\", want one of lru, arc");
  EXPECT_EQ(fault(replaced(pool, "host_pool", "device")),
            "f:1: 'level' is \"device\", want one of connector, host_pool, "
            "worker");
}

TEST(VectorReader, RefusesMissingFieldsAndWrongTypes) {
  EXPECT_EQ(fault(replaced(connector, "\"num_workers\":2,", "")),
            "f:1: no field 'num_workers'");
  EXPECT_EQ(
    fault(replaced(connector, "\"num_workers\":2", "\"num_workers\":2.0")),
    "f:1: 'num_workers' is number, want an integer");
  EXPECT_EQ(
    fault(replaced(connector, "\"num_workers\":2", "\"num_workers\":0")),
    "f:1: 'num_workers' is 0, want 1 to 64");
  EXPECT_EQ(fault(replaced(worker, "true", "1")),
            "f:1: 'store_writer' is number, want true or false");
  EXPECT_EQ(fault(pool + R"({"op":"touch","keys":["00/0","0x/0"]})"),
            "f:2: 'keys[1]' is not a hash of 1 to 64 bytes in hex");
  EXPECT_EQ(fault(pool + R"({"op":"touch","keys":["00"]})"),
            "f:2: 'keys[0]' is not a key \"hash/group\"");
  EXPECT_EQ(fault(connector + R"({"op":"completed","jobs":[[1]]})"),
            "f:2: 'jobs[0]' is not a pair");
  EXPECT_EQ(fault(connector + R"({"op":"allocated","req":"a","external":4})"),
            "f:2: no field 'blocks'");
  EXPECT_EQ(
    fault(
      connector
      + R"({"op":"allocated","req":"a","external":4,"blocks":[[1]],"hashed":[[]]})"),
    "f:2: 'hashed' has another shape than 'blocks'");
  EXPECT_EQ(
    fault(
      connector
      + R"({"op":"step","scheduled":[{"req":"a","kind":"new","new_blocks":[],"num_scheduled":1,"num_computed":0,"num_tokens":1}],"preempted":[],"finished":[]})"),
    "f:2: 'scheduled[0].new_blocks' has 0 lists, want one per group");
}

TEST(VectorReader, RefusesBrokenFiles) {
  EXPECT_EQ(fault(""), "f:1: the file is empty");
  EXPECT_EQ(fault(R"({"op":"probe"})"),
            "f:1: the first line must be the config");
  EXPECT_EQ(fault(connector + connector), "f:2: a second config");
  EXPECT_EQ(fault(connector + "[]"), "f:2: the line is array, want an object");
  EXPECT_EQ(fault(connector + R"({"op":"probe","op":"probe"})"),
            "f:2: field 'op' is there twice");
  EXPECT_EQ(fault(connector.substr(0, connector.size() / 2)).substr(0, 16),
            "f:1: parse error");
  EXPECT_EQ(fault(connector + "\n").substr(0, 16), "f:2: parse error");
}

TEST(VectorReader, RefusesLayoutsThatDoNotExist) {
  const auto text = fault(
    replaced(connector, "\"tokens_per_hash\":4", "\"tokens_per_hash\":3"));
  EXPECT_EQ(text.substr(0, 5), "f:1: ");
}

} // namespace
} // namespace kvtide::conformance
