// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/frame_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kvtide::replay {
namespace {

using ::testing::HasSubstr;

using json = nlohmann::json;

class FrameStream : public ::testing::Test {
protected:
  FrameStream() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    here.emplace(unique_fd{ends[0]});
    there = unique_fd{ends[1]};
  }

  static frame_stream::time_point soon() {
    return std::chrono::steady_clock::now() + std::chrono::seconds{10};
  }

  static frame_stream::time_point now() {
    return std::chrono::steady_clock::now();
  }

  void write(const std::vector<std::uint8_t>& bytes) const {
    ASSERT_EQ(::write(there.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }

  // What the stream says of bytes that are no message.
  std::string complaint() {
    try {
      static_cast<void>(here->receive(soon()));
      return "nothing";
    } catch (const stream_error& failure) {
      return failure.what();
    }
  }

  std::optional<frame_stream> here;
  unique_fd there;
};

TEST_F(FrameStream, CarriesMessagesBothWays) {
  auto other = frame_stream{std::move(there)};
  const auto question = json{{"say", "hello"}, {"number", 7u}};
  const auto answer = json::array({1u, "two", json::binary({3, 4})});
  here->send(question, soon());
  EXPECT_EQ(other.receive(soon()), question);
  other.send(answer, soon());
  other.send(question, soon());
  EXPECT_EQ(here->receive(soon()), answer);
  EXPECT_EQ(here->receive(soon()), question);
  EXPECT_EQ(here->receive(now()), std::nullopt);
}

TEST_F(FrameStream, WaitsForTheRestOfAMessage) {
  const auto message = json{{"say", "hello"}};
  auto bytes = json::to_cbor(message);
  bytes.insert(bytes.begin(),
               {static_cast<std::uint8_t>(bytes.size()), 0, 0, 0});
  const auto tail = bytes.back();
  bytes.pop_back();
  write(bytes);
  EXPECT_EQ(here->receive(now()), std::nullopt);
  write({tail});
  EXPECT_EQ(here->receive(soon()), message);
}

TEST_F(FrameStream, CarriesMoreThanASocketHolds) {
  auto other = frame_stream{std::move(there)};
  const auto message = json(std::string(8u << 20, 'x'));
  auto sender = std::thread{[&] { other.send(message, soon()); }};
  EXPECT_EQ(here->receive(soon()), message);
  sender.join();
}

TEST_F(FrameStream, RefusesWhatIsNoMessage) {
  write({3, 0, 0, 0, 0xff, 0xff, 0xff});
  EXPECT_THAT(complaint(), HasSubstr("not CBOR"));
}

TEST_F(FrameStream, RefusesAMessageBehindWhichSomethingIsLeft) {
  write({3, 0, 0, 0, 1, 1, 1});
  EXPECT_THAT(complaint(), HasSubstr("not CBOR"));
}

TEST_F(FrameStream, MakesNoRoomForALengthThatIsTooLarge) {
  write({0xff, 0xff, 0xff, 0xff});
  EXPECT_THAT(complaint(), HasSubstr("4294967295 bytes"));
}

TEST_F(FrameStream, SaysWhenTheOtherSideIsGone) {
  EXPECT_FALSE(here->is_closed());
  write({9, 0, 0, 0, 1});
  there = unique_fd{};
  EXPECT_TRUE(here->is_closed());
  EXPECT_THAT(complaint(), HasSubstr("in the middle of a message"));
  EXPECT_THROW(here->send(json(1), soon()), stream_error);
}

TEST_F(FrameStream, GivesUpOnWhoDoesNotRead) {
  const auto much = json(std::string(8u << 20, 'x'));
  EXPECT_THROW(here->send(much, now()), stream_error);
}

TEST(ListenAt, ReplacesWhatADeadProcessLeft) {
  const auto path
    = ::testing::TempDir() + "kvtide-listen-" + std::to_string(getpid());
  EXPECT_FALSE(connect_to(path).has_value());
  {
    const auto left = listen_at(path);
    EXPECT_TRUE(connect_to(path).has_value());
    EXPECT_THROW(static_cast<void>(listen_at(path)), stream_error);
  }
  EXPECT_FALSE(connect_to(path).has_value());
  const auto again = listen_at(path);
  EXPECT_TRUE(connect_to(path).has_value());
  unlink(path.c_str());
}

TEST(ListenAt, RefusesPathsThatNoSocketCanHave) {
  EXPECT_THROW(static_cast<void>(listen_at("")), stream_error);
  EXPECT_THROW(static_cast<void>(listen_at(std::string(200, 'x'))),
               stream_error);
  EXPECT_THROW(static_cast<void>(listen_at("/no/such/folder")), stream_error);
}

} // namespace
} // namespace kvtide::replay
