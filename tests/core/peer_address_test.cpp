// SPDX-License-Identifier: Apache-2.0

#include "core/peer_address.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kvtide::core {
namespace {

TEST(PeerAddress, ReadsWhatItWrites) {
  for (const std::string text : {"127.0.0.1:0", "localhost:65535", "[::1]:80",
                                 "[fe80::1%eth0]:1", "a-host.example:9999"}) {
    const auto read = read_peer_address(text, "listen");
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(to_string(read.value()), text);
  }
  EXPECT_EQ(read_peer_address("[::1]:80", "listen").value().host, "::1");
}

TEST(PeerAddress, NamesTheOptionOfWhatIsNone) {
  for (const std::string text :
       {"", "localhost", ":1", "localhost:", "localhost:65536", "localhost:-1",
        "localhost:1x", "localhost: 1", "::1:80", "[]:80", "[::1:80", "::1]:80",
        "a b:1", "a/b:1", "http://a:1"}) {
    const auto read = read_peer_address(text, "listen");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.failure().code, ec::invalid_options);
    EXPECT_EQ(read.failure().text.rfind("listen is \"" + text + "\": ", 0), 0U)
      << read.failure().text;
  }
}

} // namespace
} // namespace kvtide::core
