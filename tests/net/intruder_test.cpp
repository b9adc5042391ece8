// SPDX-License-Identifier: Apache-2.0

/// @file
/// Whoever reaches the port but is no peer does nothing to the ranks that
/// serve, takes no descriptor for longer than the time that is granted to
/// everybody, and leaves one line in the log at most.

#include "net/household.hpp"
#include "net/unique_fd.hpp"
#include "tests/net/authority.hpp"
#include "tests/net/deployment.hpp"
#include "tests/net/intruder.hpp"
#include "tests/net/log_ear.hpp"
#include "tests/net/open_files.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

namespace kvtide {
namespace {

using test::intruder;

class Intruder : public ::testing::Test, public test::deployment {
protected:
  Intruder() {
    // Where the machine is busy with other things, nobody is to be lost for it.
    set_detection(20s);
  }

  void set_detection(std::chrono::milliseconds span) {
    engine_side.detection = worker_side.detection = span;
  }

  void start_all() {
    ASSERT_NO_FATAL_FAILURE(start_engine());
    ASSERT_NO_FATAL_FAILURE(start_worker());
    ASSERT_NO_FATAL_FAILURE(await_rank());
    ASSERT_NO_FATAL_FAILURE(serve());
    files = test::open_files();
  }

  std::string address() const {
    return address_of(*engine_network);
  }

  /// Nothing has happened to the rank that serves, and nobody is left.
  void expect_no_effect() {
    serve();
    EXPECT_EQ(ear.count(" is gone"), 0U) << ear.text();
    EXPECT_EQ(ear.count("lost the scheduler"), 0U) << ear.text();
    engine->get_stats();
    const auto answer = hear<stats_answer>();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->values.order_errors, 0U);
    EXPECT_EQ(answer->values.late_messages, 0U);
    const auto deadline = std::chrono::steady_clock::now() + test::patience;
    while (test::open_files() != files) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::yield();
    }
  }

  test::log_ear ear;
  std::size_t files = 0;
};

class TlsIntruder : public Intruder {
protected:
  TlsIntruder() {
    ours.give(engine_side, "engine");
    ours.give(worker_side, "worker");
  }

  test::scratch_folder folder;
  test::authority ours{folder, "ours"};
};

// -- what comes ---------------------------------------------------------------

/// Makes up what somebody may send who does not know better, or means harm.
class fuzz {
public:
  explicit fuzz(std::uint64_t seed) : random_(seed) {
    // nop
  }

  std::string next() {
    switch (below(8)) {
      default:
        return {};
      case 1:
        return bytes(below(64));
      case 2:
        return bytes(below(20'000));
      case 3:
        return hello_.substr(0, below(hello_.size()));
      case 4:
        return spoiled(hello_);
      case 5:
        return record();
      case 6:
        return test::frame(below(8), static_cast<unsigned>(random_()))
             + bytes(below(200));
      case 7:
        return "GET / HTTP/1.1\r\nHost: kvtide\r\n\r\n" + bytes(below(9));
    }
  }

private:
  unsigned below(std::size_t end) {
    return static_cast<unsigned>(random_() % end);
  }

  std::string bytes(std::size_t count) {
    auto out = std::string(count, '\0');
    for (auto& x : out)
      x = static_cast<char>(random_());
    return out;
  }

  std::string spoiled(std::string text) {
    for (auto i = below(8) + 1; i > 0; --i)
      text[below(text.size())] = static_cast<char>(random_());
    return text;
  }

  /// One of TLS: any kind, version and length, and less or more behind it.
  std::string record() {
    auto out = bytes(5);
    out[0] = static_cast<char>(20 + below(6));
    out[1] = 3;
    return out + bytes(below(17'000));
  }

  std::mt19937_64 random_;
  const std::string hello_ = test::client_hello();
};

/// How many inputs are tried: all with the target fuzz-net.
int inputs() {
  const auto* wanted = std::getenv("KVTIDE_NET_FUZZ");
  return wanted == nullptr ? 500 : std::atoi(wanted);
}

TEST_F(TlsIntruder, HasNoEffectWhateverItSends) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  const auto seed = 20'261'130U;
  auto source = fuzz{seed};
  for (auto i = 0; i < inputs(); ++i) {
    const auto input = source.next();
    const auto one = intruder{address()};
    ASSERT_TRUE(one.connected()) << "input " << i;
    one.send(input);
    one.end();
    ASSERT_TRUE(one.closed(test::patience)) << "input " << i;
    if (i % 50 == 0)
      run_step({});
  }
  expect_no_effect();
  EXPECT_EQ(ear.count("is let in"), 1U) << "nobody else was";
  EXPECT_LE(ear.count("turned "), static_cast<std::size_t>(inputs()));
}

TEST_F(Intruder, HasNoEffectOnAPlainPortEither) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  auto source = fuzz{20'261'201U};
  for (auto i = 0; i < inputs() / 5; ++i) {
    const auto one = intruder{address()};
    one.send(source.next());
    one.end();
    ASSERT_TRUE(one.closed(test::patience)) << "input " << i;
  }
  expect_no_effect();
}

// -- single ones --------------------------------------------------------------

TEST_F(Intruder, MayNotAnnounceGigabytes) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  for (const auto operation : {0U, 1U, 2U, 3U, 4U}) {
    auto header = test::frame(operation, 0xFFFF'FFFF);
    // CAF itself would refuse these without.
    header[15] = operation == 0 ? 1 : 0;
    header[31] = operation > 1 ? 1 : 0;
    const auto one = intruder{address()};
    ASSERT_TRUE(one.send(header));
    EXPECT_TRUE(one.closed(test::patience)) << operation;
  }
  EXPECT_NE(ear.await("announced a message of 4294967295 bytes"), "")
    << ear.text();
  EXPECT_EQ(ear.count("turned "), 5U) << ear.text();
  expect_no_effect();
}

// CAF follows a null pointer.
TEST_F(Intruder, MayNotIntroduceItselfWithoutAName) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  for (const auto operation : {0U, 1U}) {
    auto header = test::frame(operation, 0);
    header[15] = static_cast<char>(1 - operation); // CAF takes it for whole.
    const auto one = intruder{address()};
    ASSERT_TRUE(one.send(header));
    EXPECT_TRUE(one.closed(test::patience)) << operation;
  }
  EXPECT_EQ(ear.count("in the wrong way"), 2U) << ear.text();
  expect_no_effect();
}

TEST_F(Intruder, IsNotHeardBeforeItIntroducedItself) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  for (const auto operation : {2U, 3U, 4U, 5U, 6U}) {
    auto header = test::frame(operation, operation == 6 ? 0 : 4);
    header[operation == 5 ? 23 : 31] = operation == 6 ? 0 : 1;
    const auto one = intruder{address()};
    ASSERT_TRUE(one.send(header + "abcd"));
    EXPECT_TRUE(one.closed(test::patience)) << operation;
  }
  EXPECT_EQ(ear.count("it did not introduce itself"), 5U) << ear.text();
  expect_no_effect();
}

TEST_F(Intruder, MayNotClaimToBeSomebodyElseInHalfASentence) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  {
    const auto one = intruder{address()};
    ASSERT_TRUE(one.send(test::frame(1, 3) + "abc"));
    EXPECT_TRUE(one.closed(test::patience));
  }
  expect_no_effect();
}

/// Those that say nothing, or half a word.
void stay_silent(Intruder&, const std::string& address,
                 std::vector<intruder>& out, const std::string& word) {
  for (std::size_t i = 0; i < net::most_unproven + 8; ++i) {
    out.emplace_back(address);
    ASSERT_TRUE(out.back().connected());
    ASSERT_TRUE(out.back().send(word));
  }
}

TEST_F(Intruder, IsSentAwayIfItSaysNothing) {
  set_detection(3s);
  ASSERT_NO_FATAL_FAILURE(start_all());
  auto silent = std::vector<intruder>{};
  stay_silent(*this, address(), silent, {});
  serve();
  for (const auto& one : silent)
    EXPECT_TRUE(one.closed(test::patience));
  silent.clear();
  EXPECT_NE(ear.await("it said nothing for"), "") << ear.text();
  EXPECT_NE(ear.await("others wait"), "") << ear.text();
  expect_no_effect();
}

TEST_F(TlsIntruder, IsSentAwayInTheMiddleOfAHandshake) {
  set_detection(3s);
  ASSERT_NO_FATAL_FAILURE(start_all());
  auto silent = std::vector<intruder>{};
  stay_silent(*this, address(), silent, test::client_hello());
  serve();
  for (const auto& one : silent)
    EXPECT_TRUE(one.closed(test::patience));
  silent.clear();
  EXPECT_NE(ear.await("no answer for"), "") << ear.text();
  EXPECT_NE(ear.await("others wait"), "") << ear.text();
  expect_no_effect();
}

/// While it lives, the process may open no more descriptors than it has now.
class no_more_descriptors {
public:
  no_more_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    auto less = before_;
    // Numbers below may be free: of what was closed.
    while (placeholders_.size() < 20)
      placeholders_.emplace_back(::dup(STDERR_FILENO));
    less.rlim_cur = static_cast<rlim_t>(placeholders_.back().get()) + 1;
    ::setrlimit(RLIMIT_NOFILE, &less);
  }

  ~no_more_descriptors() {
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }

  /// Makes room for one.
  /// @returns false if there is none to be had
  bool spare_one() {
    if (placeholders_.empty())
      return false;
    placeholders_.erase(placeholders_.begin());
    return true;
  }

private:
  rlimit before_{};
  std::vector<net::unique_fd> placeholders_;
};

// CAF would turn in circles, or end the process.
TEST_F(TlsIntruder, MayTakeAllDescriptors) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  {
    auto limit = no_more_descriptors{};
    auto held = std::vector<intruder>{};
    while (limit.spare_one()) {
      held.emplace_back(address());
      if (held.back().connected())
        held.back().send(test::client_hello());
    }
    serve();
    EXPECT_NE(ear.await("Too many open files"), "") << ear.text();
    serve();
  }
  expect_no_effect();
}

} // namespace
} // namespace kvtide
