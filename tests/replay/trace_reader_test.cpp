// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/trace_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace kvtide::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A file with this text, gone with the test.
class TraceReader : public ::testing::Test {
protected:
  ~TraceReader() override {
    std::remove(path.c_str());
  }

  result<std::vector<trace_row>> read(const std::string& text) {
    std::ofstream{path} << text;
    return read_trace(path);
  }

  // What is wrong, without the file's name.
  std::string complaint(const std::string& text) {
    const auto rows = read(text);
    if (rows)
      return "nothing";
    EXPECT_EQ(rows.failure().code, ec::invalid_argument);
    EXPECT_EQ(rows.failure().text.find(path), 0u);
    return rows.failure().text.substr(path.size());
  }

  const std::string path
    = ::testing::TempDir() + "trace_reader_test."
    + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(TraceReader, ReadsMooncakeRows) {
  const auto rows = read(
    R"({"timestamp": 5, "input_length": 600, "output_length": 3, "hash_ids": [7, 8]})"
    "\n"
    R"({"timestamp": 9, "input_length": 1, "output_length": 0, "hash_ids": [7]})"
    "\n");
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows.value().size(), 2u);
  EXPECT_EQ(rows.value()[0].arrival, 0);
  EXPECT_EQ(rows.value()[0].prompt_tokens, 600);
  EXPECT_EQ(rows.value()[0].output_tokens, 3);
  EXPECT_THAT(rows.value()[0].prefix_ids, ElementsAre(7u, 8u));
  EXPECT_EQ(rows.value()[1].arrival, 4'000'000);
  EXPECT_EQ(rows.value()[1].output_tokens, 1);
}

TEST_F(TraceReader, ReadsAzureRows) {
  const auto rows = read("TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                         "2023-11-16 23:59:59.5000000,4808,10\r\n"
                         "2023-11-17 00:00:00,3180,8");
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows.value().size(), 2u);
  EXPECT_EQ(rows.value()[0].prompt_tokens, 4'808);
  EXPECT_EQ(rows.value()[0].output_tokens, 10);
  EXPECT_THAT(rows.value()[0].prefix_ids, IsEmpty());
  EXPECT_EQ(rows.value()[1].arrival, 500'000'000);
}

TEST_F(TraceReader, NamesFileAndLineOfWhatIsWrong) {
  const auto good
    = std::string{R"({"timestamp":0,"input_length":5,"output_length":1,)"}
    + R"("hash_ids":[1]})" + "\n";
  EXPECT_EQ(complaint(good + R"({"timestamp": 3, "input_le)"),
            ":2: not a complete JSON object");
  EXPECT_EQ(complaint(good + "\n[]\n"), ":3: not a complete JSON object");
  EXPECT_EQ(
    complaint(
      R"({"timestamp":0,"input_length":-5,"output_length":1,"hash_ids":[]})"),
    ":1: input_length is -5, must be 1 to 10000000");
  EXPECT_EQ(
    complaint(
      R"({"timestamp":0,"input_length":5,"output_length":-1,"hash_ids":[1]})"),
    ":1: output_length is -1, must be 0 to 10000000");
  EXPECT_EQ(
    complaint(
      R"({"timestamp":0,"input_length":1e3,"output_length":1,"hash_ids":[1]})"),
    ":1: input_length must be a whole number");
  EXPECT_EQ(complaint(R"({"timestamp":0,"input_length":18446744073709551615,)"
                      R"("output_length":1,"hash_ids":[1]})"),
            ":1: input_length is larger than 10000000");
  EXPECT_EQ(complaint(R"({"input_length":5})"), ":1: timestamp is missing");
  EXPECT_EQ(
    complaint(
      R"({"timestamp":0,"input_length":513,"output_length":1,"hash_ids":[1]})"),
    ":1: hash_ids has 1 entries, input_length needs 2");
  EXPECT_EQ(
    complaint(
      R"({"timestamp":0,"input_length":5,"output_length":1,"hash_ids":[-1]})"),
    ":1: hash_ids must hold whole numbers from 0 on");
  EXPECT_EQ(complaint("hello\n"),
            ":1: neither a JSON object nor the header "
            "\"TIMESTAMP,ContextTokens,GeneratedTokens\"");
}

TEST_F(TraceReader, NamesFileAndLineOfWhatIsWrongWithAzureRows) {
  const auto head = std::string{"TIMESTAMP,ContextTokens,GeneratedTokens\n"};
  EXPECT_EQ(complaint(head + "2023-11-16 18:17:03.9799600,4808"),
            ":2: a row has 3 fields: TIMESTAMP,ContextTokens,GeneratedTokens");
  EXPECT_EQ(complaint(head + "2023-02-30 18:17:03,1,1"),
            ":2: TIMESTAMP \"2023-02-30 18:17:03\" is not a date and time");
  EXPECT_EQ(complaint(head + "yesterday,1,1"),
            ":2: TIMESTAMP \"yesterday\" is not a date and time");
  EXPECT_EQ(complaint(head + "2023-11-16 18:17:03,-4,1"),
            ":2: ContextTokens is -4, must be 1 to 10000000");
  EXPECT_EQ(complaint(head + "2023-11-16 18:17:03,4,1x"),
            ":2: GeneratedTokens \"1x\" is not a whole number");
  EXPECT_EQ(complaint(head
                      + "2023-11-16 18:17:03,4,1\n"
                        "2023-11-16 18:17:02,4,1\n"),
            ":3: earlier than the row before it");
}

TEST_F(TraceReader, RefusesATraceWithoutRequests) {
  EXPECT_EQ(complaint(""), ": holds no request");
  EXPECT_EQ(complaint("TIMESTAMP,ContextTokens,GeneratedTokens\n"),
            ": holds no request");
}

TEST_F(TraceReader, SaysWhyThereIsNothingToRead) {
  EXPECT_EQ(read_trace("/nowhere/at/all").failure().text,
            "/nowhere/at/all: cannot be opened: No such file or directory");
  EXPECT_EQ(read_trace("/").failure().text, "/: is a directory, not a file");
  EXPECT_EQ(read_trace("/dev/zero").failure().text,
            "/dev/zero: is neither a file nor a pipe");
}

TEST_F(TraceReader, RefusesALineWithoutEnd) {
  const auto row = std::string{
    R"({"timestamp":0,"input_length":5,"output_length":1,"hash_ids":[1]})"};
  // Blanks count, and so does the last line, which may have no end.
  const auto padding = std::string((1u << 20) - row.size(), ' ');
  EXPECT_TRUE(read(row + padding).ok());
  EXPECT_TRUE(read(row + padding + "\n").ok());
  EXPECT_EQ(complaint(row + "\n" + padding + row + " \n" + row),
            ":2: longer than 1048576 bytes");
  EXPECT_EQ(complaint(padding + row + " "), ":1: longer than 1048576 bytes");
}

TEST_F(TraceReader, ReadsFromAPipe) {
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // Opened for both, so that neither side waits for the other; this much fits.
  const auto pipe = open(path.c_str(), O_RDWR);
  ASSERT_GE(pipe, 0);
  const auto rows = std::string{
    R"({"timestamp":0,"input_length":5,"output_length":1,"hash_ids":[1]})"
    "\nno row\n"};
  ASSERT_EQ(write(pipe, rows.data(), rows.size()),
            static_cast<ssize_t>(rows.size()));
  EXPECT_EQ(read_trace(path).failure().text,
            path + ":2: not a complete JSON object");
  close(pipe);
}

TEST(IdealHits, CountsLeadingIdsOfEarlierRows) {
  const auto rows = std::vector<trace_row>{
    {0, 1'000, 1, {1, 2}},
    // The second id follows another one, so it is another prefix.
    {0, 1'100, 1, {3, 2, 9}},
    // Not more than all but one token.
    {0, 900, 1, {1, 2}},
    // Known ids behind an unknown one are out of reach.
    {0, 1'500, 1, {1, 5, 2}},
  };
  const auto ideal = ideal_of(rows);
  EXPECT_EQ(ideal.prompt_tokens, 4'500);
  EXPECT_EQ(ideal.hit_tokens, 899 + 512);
}

} // namespace
} // namespace kvtide::replay
