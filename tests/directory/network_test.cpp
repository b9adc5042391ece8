// SPDX-License-Identifier: Apache-2.0

/// @file
/// A directory that replicas in this process and in another one reach over
/// loopback.

#include "kvtide/network.hpp"

#include "tests/support/small_replica.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <spawn.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::chrono_literals;

namespace kvtide {
namespace {

constexpr auto detection = 400ms;
constexpr auto address_variable = "KVTIDE_TEST_DIRECTORY";

std::shared_ptr<network> some_network(const std::string& listen = {}) {
  auto opts = network_options{};
  opts.listen = listen;
  opts.detection = detection;
  return make_network(opts).value();
}

std::shared_ptr<publisher> publisher_to(const std::string& address,
                                        const std::string& name) {
  return make_publisher({{nullptr, address, some_network()}, name}).value();
}

/// This program again, as a replica that has served a prompt.
class child {
public:
  explicit child(const std::string& address) {
    setenv(address_variable, address.c_str(), 1);
    const char* arguments[]
      = {"replica", "--gtest_filter=*ReplicaOfAnother*",
         "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr};
    EXPECT_EQ(posix_spawn(&id_, "/proc/self/exe", nullptr, nullptr,
                          const_cast<char**>(arguments), environ),
              0);
    unsetenv(address_variable);
  }

  ~child() {
    if (id_ > 0)
      end();
  }

  void signal(int number) const {
    ::kill(id_, number);
  }

  void end() {
    signal(SIGKILL);
    waitpid(id_, nullptr, 0);
    id_ = 0;
  }

private:
  pid_t id_ = 0;
};

// Run by `child` alone.
TEST(DirectoryChild, DISABLED_ReplicaOfAnotherProcess) {
  const auto* address = std::getenv(address_variable);
  if (address == nullptr)
    GTEST_SKIP() << "a part of another test";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto here = test::small_replica{publisher_to(address, "child")};
  here.serve(42);
  for (;;)
    pause(); // Until it is killed, or its parent was.
}

class DirectoryNetwork : public ::testing::Test {
protected:
  DirectoryNetwork() {
    where.emplace(directory::start({some_network("127.0.0.1:0")}).value());
    start_router();
  }

  void start_router() {
    auto opts = router_options{};
    opts.place.address = where->address();
    opts.place.network = some_network();
    opts.shared = test::small_options();
    opts.timeout = 1s;
    uut.emplace(router::start(opts).value());
  }

  std::optional<directory> where;
  std::optional<router> uut;
};

TEST_F(DirectoryNetwork, APromptGoesWhereItIsCached) {
  auto a = test::small_replica{publisher_to(where->address(), "a")};
  auto b = test::small_replica{publisher_to(where->address(), "b")};
  b.serve(42);
  EXPECT_TRUE(test::hears(*uut, 42, [](const replica_choice& x) {
    return x.replica == "b" && x.tokens == 64 && x.all.size() == 2;
  }));
}

TEST_F(DirectoryNetwork, ADirectoryThatIsStartedAgainLearnsEverything) {
  auto a = test::small_replica{publisher_to(where->address(), "a")};
  a.serve(42);
  EXPECT_TRUE(
    test::hears(*uut, 42, [](const auto& x) { return x.tokens == 64; }));
  const auto address = where->address();
  where.reset();
  EXPECT_TRUE(test::hears(
    *uut, 42, [](const auto& x) { return x.reason.code == ec::timeout; }));
  a.serve(43);
  where.emplace(directory::start({some_network(address)}).value());
  EXPECT_TRUE(
    test::hears(*uut, 42, [](const auto& x) { return x.tokens == 64; }));
  EXPECT_TRUE(
    test::hears(*uut, 43, [](const auto& x) { return x.tokens == 64; }));
}

TEST_F(DirectoryNetwork, AReplicaThatIsStoppedIsForgottenAndComesBack) {
  auto other = child{where->address()};
  EXPECT_TRUE(test::hears(*uut, 42, [](const replica_choice& x) {
    return x.replica == "child" && x.tokens == 64;
  }));
  other.signal(SIGSTOP);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(
    test::hears(*uut, 42, [](const auto& x) { return x.all.empty(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - start, detection + 2s);
  other.signal(SIGCONT);
  EXPECT_TRUE(
    test::hears(*uut, 42, [](const auto& x) { return x.tokens == 64; }));
}

TEST_F(DirectoryNetwork, AReplicaThatIsKilledIsForgotten) {
  auto other = child{where->address()};
  EXPECT_TRUE(
    test::hears(*uut, 42, [](const auto& x) { return x.tokens == 64; }));
  other.end();
  EXPECT_TRUE(
    test::hears(*uut, 42, [](const auto& x) { return x.all.empty(); }));
  auto again = test::small_replica{publisher_to(where->address(), "child")};
  EXPECT_TRUE(test::hears(*uut, 42, [](const replica_choice& x) {
    return x.replica == "child" && x.tokens == 0;
  }));
}

} // namespace
} // namespace kvtide
