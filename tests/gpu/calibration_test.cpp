// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/calibration.hpp"
#include "tests/gpu/cuda_test.hpp"
#include "tests/gpu/scratch_tree.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sys/stat.h>

namespace kvtide::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class cuda_calibration : public cuda_test {
protected:
  const scratch_tree tree;
  const std::string file = tree.root() + "/deep/copy-rates";
  const calibration_key key{"stand-in device 0", 13'000, 13'000, 12};
};

TEST_F(cuda_calibration, WhatIsWrittenIsRead) {
  EXPECT_FALSE(read_calibration(file, key).has_value());
  ASSERT_EQ(write_calibration(file, key, {65'536, 50'000'000'000}).text, "");
  const auto found = read_calibration(file, key);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->kernel_below, 65'536u);
  EXPECT_EQ(found->bytes_per_second, 50'000'000'000u);
}

TEST_F(cuda_calibration, ALineIsForOneKey) {
  ASSERT_EQ(write_calibration(file, key, {1, 10}).text, "");
  auto other = key;
  other.driver_version = 13'010;
  EXPECT_FALSE(read_calibration(file, other).has_value());
  ASSERT_EQ(write_calibration(file, other, {2, 20}).text, "");
  other.kernel_blocks = 1;
  EXPECT_FALSE(read_calibration(file, other).has_value());
  ASSERT_EQ(write_calibration(file, key, {3, 30}).text, "");
  EXPECT_EQ(read_calibration(file, key)->kernel_below, 3u);
  other.kernel_blocks = 12;
  EXPECT_EQ(read_calibration(file, other)->kernel_below, 2u);
  auto in = std::ifstream{file};
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>{in}, {}, '\n'), 2);
}

TEST_F(cuda_calibration, ADamagedFileSaysNothing) {
  ASSERT_EQ(write_calibration(file, key, {7, 70}).text, "");
  auto in = std::ifstream{file};
  const auto line = std::string{std::istreambuf_iterator<char>{in}, {}};
  const auto numbers = line.find("7\t70");
  ASSERT_NE(numbers, std::string::npos);
  const auto start = line.substr(0, numbers);
  for (const auto& text :
       {std::string{}, std::string{"\n\n"}, std::string(100, '\0'), start,
        start + "7", start + "x\t70", start + "7\t0", line.substr(3)}) {
    tree.write("/deep/copy-rates", text);
    EXPECT_FALSE(read_calibration(file, key).has_value()) << text;
  }
}

/// Nor is a line added to it.
TEST_F(cuda_calibration, AFileOfSomebodyElseStaysAsItIs) {
  tree.write("/deep/copy-rates", "garbage\n");
  const auto refused = write_calibration(file, key, {7, 70});
  EXPECT_EQ(refused.code, ec::invalid_argument);
  EXPECT_THAT(refused.text, HasSubstr("something else"));
  auto in = std::ifstream{file};
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>{in}, {}}), "garbage\n");
  tree.write("/deep/copy-rates", std::string(100'000, 'x'));
  EXPECT_THAT(write_calibration(file, key, {7, 70}).text,
              HasSubstr("too large"));
}

/// Some have no end, and others wait for somebody to write.
TEST_F(cuda_calibration, ReadsRegularFilesAlone) {
  const auto pipe = tree.root() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& place :
       {std::string{"/dev/zero"}, std::string{"/dev/full"}, pipe}) {
    EXPECT_FALSE(read_calibration(place, key).has_value());
    EXPECT_THAT(write_calibration(place, key, {7, 70}).text,
                HasSubstr("regular file"));
  }
}

TEST_F(cuda_calibration, APlaceThatCannotBeWrittenIsSaid) {
  tree.write("/deep", "a file, not a folder");
  const auto refused = write_calibration(file, key, {7, 70});
  EXPECT_EQ(refused.code, ec::invalid_argument);
  EXPECT_THAT(refused.text, HasSubstr(file));
  EXPECT_THAT(refused.text, HasSubstr("measured again"));
}

TEST_F(cuda_calibration, NothingIsLeftOfAWriteThatFailed) {
  // A folder in the place of the file.
  tree.write("/deep/copy-rates/inside", "");
  EXPECT_EQ(write_calibration(file, key, {7, 70}).code, ec::invalid_argument);
  auto names = std::vector<std::string>{};
  for (const auto& x :
       std::filesystem::directory_iterator{tree.root() + "/deep"})
    names.push_back(x.path().filename());
  EXPECT_THAT(names, ::testing::ElementsAre("copy-rates"));
}

TEST_F(cuda_calibration, MeasuresBothPaths) {
  const auto found = measure_copies(4);
  ASSERT_TRUE(found.ok()) << found.failure().text;
  EXPECT_GT(found.value().bytes_per_second, 0u);
  EXPECT_LE(found.value().kernel_below, 512u << 10);
  EXPECT_GT(stand_in::calls("kernel"), 0u);
  EXPECT_GT(stand_in::calls("cudaMemcpyBatchAsync"), 0u);
  expect_no_error();
  EXPECT_THAT(stand_in::leaks(), IsEmpty());
}

/// MEM-01
TEST_F(cuda_calibration, Mem01WhatFailsIsSaidAndGone) {
  for (const auto* call :
       {"cudaMalloc", "cudaEventRecord", "cudaEventElapsedTime"}) {
    stand_in::fail_call(call, 1, cudaErrorUnknown);
    const auto found = measure_copies(4);
    ASSERT_FALSE(found.ok());
    EXPECT_THAT(found.failure().text, HasSubstr(call));
    expect_no_error();
  }
}

/// A process measures once: a registration that comes again does not stop the
/// device for it.
TEST_F(cuda_calibration, AProcessMeasuresOnce) {
  const auto first = rates_of(0, 12, file).value().rates;
  EXPECT_GT(first.bytes_per_second, 0u);
  const auto calls = stand_in::calls("cudaMalloc");
  EXPECT_EQ(rates_of(0, 12, {}).value().rates.bytes_per_second,
            first.bytes_per_second);
  EXPECT_EQ(stand_in::calls("cudaMalloc"), calls);
  forget_rates();
  EXPECT_EQ(rates_of(0, 12, file).value().rates.bytes_per_second,
            first.bytes_per_second);
  EXPECT_EQ(stand_in::calls("cudaMalloc"), calls) << "the file knows";
}

/// The file of a second registration may be another one.
TEST_F(cuda_calibration, WhatTheProcessKnowsIsKeptAsWell) {
  const auto first = rates_of(0, 12, {}).value();
  EXPECT_EQ(first.note, "");
  EXPECT_EQ(rates_of(0, 12, file).value().note, "");
  forget_rates();
  const auto calls = stand_in::calls("cudaMalloc");
  EXPECT_EQ(rates_of(0, 12, file).value().rates.bytes_per_second,
            first.rates.bytes_per_second);
  EXPECT_EQ(stand_in::calls("cudaMalloc"), calls) << "the file knows";
}

TEST_F(cuda_calibration, APlaceThatCannotBeHadIsANote) {
  EXPECT_THAT(rates_of(0, 12, "/dev/null/rates").value().note,
              HasSubstr("cannot keep the measured copy rates"));
}

/// An engine that has filled the device is registered all the same.
TEST_F(cuda_calibration, WithoutMemoryToMeasureItEstimates) {
  stand_in::fail_call("cudaMalloc", 1, cudaErrorMemoryAllocation);
  EXPECT_EQ(rates_of(0, 12, file).value().rates.bytes_per_second,
            estimated_rates.bytes_per_second);
  EXPECT_FALSE(read_calibration(file, key).has_value());
  expect_no_error();
  // Other trouble is trouble.
  stand_in::fail_call("cudaMalloc", 1, cudaErrorUnknown);
  EXPECT_EQ(rates_of(0, 12, file).failure().code, ec::device_failure);
}

} // namespace
} // namespace kvtide::gpu
