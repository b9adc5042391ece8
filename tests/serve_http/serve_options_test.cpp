// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/serve_options.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace serve {
namespace {

std::variant<serve_options, early_exit>
parse(const std::vector<std::string>& words) {
  auto argv = std::vector<const char*>{"kvtide-serve"};
  for (const auto& word : words)
    argv.push_back(word.c_str());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

serve_options accepted(const std::vector<std::string>& words) {
  const auto parsed = parse(words);
  if (const auto* exit = std::get_if<early_exit>(&parsed)) {
    ADD_FAILURE() << exit->text;
    return {};
  }
  return std::get<serve_options>(parsed);
}

TEST(ServeOptions, SetBothSides) {
  const auto opts
    = accepted({"--listen", "127.0.0.2:81", "--model", "sliding",
                "--device-blocks", "64", "--host-pool", "1MiB", "--max-tokens",
                "100", "--drain", "0.5", "--max-body", "1KiB"});
  EXPECT_EQ(opts.http.address, "127.0.0.2");
  EXPECT_EQ(opts.http.port, 81);
  EXPECT_EQ(opts.engine.variant, model_variant::sliding_window);
  EXPECT_EQ(opts.engine.device_blocks, 64u);
  EXPECT_EQ(opts.engine.host_bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(opts.http.drain, std::chrono::milliseconds{500});
  EXPECT_EQ(opts.http.max_body_bytes, 1'024u);
  EXPECT_EQ(opts.http.completions.max_tokens, 100) << "both know the limit";
}

TEST(ServeOptions, TakeIpv6AddressesInBrackets) {
  EXPECT_EQ(accepted({"--listen", "[::1]:0"}).http.address, "::1");
}

TEST(ServeOptions, AreRefusedWithWhatIsWrong) {
  for (const auto& words : std::vector<std::vector<std::string>>{
         {"--listen", "localhost"},
         {"--listen", "127.0.0.1:65536"},
         {"--listen", ":80"},
         {"--model", "large"},
         {"--device-blocks", "-1"},
         {"--device-blocks", "0"},
         {"--device-blocks", "1"},
         {"--drain", "nan"},
         {"--drain", "-1"},
         {"--host-pool", "MiB"},
         {"--host-pool", "1.5GiB"},
         {"--host-pool", "1 GiB"},
         {"--host-pool", "-1"},
         {"--host-pool", "1TB"},
         {"--host-pool", "99999999999999999999"},
         {"--host-pool", "99999999999GiB"},
         {"--max-header", "1"},
         {"--unknown"},
         {"word"}}) {
    const auto parsed = parse(words);
    ASSERT_TRUE(std::holds_alternative<early_exit>(parsed)) << words.back();
    EXPECT_EQ(std::get<early_exit>(parsed).code, 2);
    EXPECT_GT(std::get<early_exit>(parsed).text.size(), 40u);
  }
}

TEST(ServeOptions, AreToldInSizesThatAreWhole) {
  const auto parsed = parse({"--host-pool", "1.5GiB"});
  EXPECT_EQ(std::get<early_exit>(parsed).text,
            "kvtide-serve: --host-pool: 1.5GiB is not a whole number of bytes, "
            "KiB, MiB or GiB below 2^64 bytes, for example 1536MiB\nRun with "
            "--help for the "
            "options.");
  EXPECT_EQ(accepted({"--host-pool", "1536MiB"}).engine.host_bytes,
            std::uint64_t{3} << 29);
  EXPECT_EQ(accepted({"--host-pool", "7"}).engine.host_bytes, 7u);
}

TEST(ServeOptions, AreExplainedWithTheBoundsThatHold) {
  EXPECT_NE(std::get<early_exit>(parse({"--help"}))
              .text.find("Blocks of device memory (2 to 10000000"),
            std::string::npos);
  EXPECT_EQ(accepted({"--device-blocks", "2"}).engine.device_blocks, 2u);
}

TEST(ServeOptions, AreExplainedOnRequest) {
  const auto parsed = parse({"--help"});
  EXPECT_EQ(std::get<early_exit>(parsed).code, 0);
  EXPECT_NE(std::get<early_exit>(parsed).text.find("--drain"),
            std::string::npos);
}

} // namespace
} // namespace serve
