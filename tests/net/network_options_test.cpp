// SPDX-License-Identifier: Apache-2.0

/// @file
/// What is refused before anything is opened, and in which words.

#include "kvtide/network.hpp"
#include "kvtide/runtime.hpp"
#include "kvtide/worker.hpp"

#include "tests/net/authority.hpp"
#include "tests/net/intruder.hpp"
#include "tests/net/log_ear.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace kvtide {
namespace {

class NetworkOptions : public ::testing::Test {
protected:
  NetworkOptions() {
    ours.give(opts, "engine");
  }

  /// What is wrong; empty if nothing is.
  std::string fault() const {
    auto made = make_network(opts);
    if (made)
      return {};
    EXPECT_EQ(made.failure().code, ec::invalid_options);
    return made.failure().text;
  }

  test::scratch_folder folder;
  test::authority ours{folder, "ours"};
  network_options opts;
};

TEST_F(NetworkOptions, AreFineAsTheyAre) {
  EXPECT_EQ(fault(), "");
  opts = {};
  EXPECT_EQ(fault(), "");
  opts.listen = "localhost:0";
  EXPECT_EQ(fault(), "");
}

TEST_F(NetworkOptions, NeedAllThreeFilesOrNone) {
  opts.trusted.clear();
  EXPECT_THAT(fault(), HasSubstr("all three files or none"));
  opts.private_key.clear();
  EXPECT_THAT(fault(), HasSubstr("all three files or none"));
}

TEST_F(NetworkOptions, NameAFileThatIsMissing) {
  opts.certificate = folder.path("none.pem");
  EXPECT_THAT(fault(), AllOf(HasSubstr("certificate is"), HasSubstr("none.pem"),
                             HasSubstr("No such file")));
  ours.give(opts, "engine");
  opts.private_key = folder.path("none.key");
  EXPECT_THAT(fault(),
              AllOf(HasSubstr("private_key is"), HasSubstr("No such file")));
  ours.give(opts, "engine");
  opts.trusted = folder.path("none.pem");
  EXPECT_THAT(fault(),
              AllOf(HasSubstr("trusted is"), HasSubstr("No such file")));
}

TEST_F(NetworkOptions, NameAFileThatIsNoPem) {
  const auto text = folder.write("text.pem", "no certificate\n");
  const auto broken
    = folder.write("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END "
                                 "CERTIFICATE-----\n");
  opts.certificate = text;
  EXPECT_THAT(fault(), AllOf(HasSubstr("certificate is"),
                             HasSubstr("no certificate in PEM")));
  opts.certificate = broken;
  EXPECT_THAT(fault(), HasSubstr("no certificate in PEM"));
  ours.give(opts, "engine");
  opts.private_key = text;
  EXPECT_THAT(fault(), HasSubstr("no private key in PEM"));
  ours.give(opts, "engine");
  opts.trusted = text;
  EXPECT_THAT(fault(),
              AllOf(HasSubstr("trusted is"), HasSubstr("nobody may join")));
  opts.trusted = broken;
  EXPECT_THAT(fault(), AllOf(HasSubstr("certificate 1"), HasSubstr("damaged")));
}

TEST_F(NetworkOptions, NameAKeyOfAnotherCertificate) {
  auto other = network_options{};
  ours.give(other, "other");
  opts.private_key = other.private_key;
  EXPECT_THAT(fault(), AllOf(HasSubstr("private_key is"),
                             HasSubstr("not the key of the certificate")));
}

TEST_F(NetworkOptions, NameACertificateOutOfItsTime) {
  ours.give(opts, "late", {-7'200, -3'600});
  EXPECT_THAT(fault(),
              AllOf(HasSubstr("certificate is"), HasSubstr("it expired on")));
  ours.give(opts, "early", {3'600, 7'200});
  EXPECT_THAT(fault(), HasSubstr("not valid before"));
  auto late = network_options{};
  ours.give(late, "late", {-7'200, -3'600});
  ours.give(opts, "engine");
  opts.trusted = late.certificate;
  EXPECT_THAT(fault(),
              AllOf(HasSubstr("trusted is"), HasSubstr("it expired on")));
}

TEST_F(NetworkOptions, WarnOfAKeyThatOthersMayRead) {
  namespace fs = std::filesystem;
  auto ear = test::log_ear{};
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(ear.count(), 0U) << ear.text();
  fs::permissions(opts.private_key, fs::perms::group_read,
                  fs::perm_options::add);
  EXPECT_EQ(fault(), "");
  EXPECT_EQ(ear.count("chmod 600"), 1U) << ear.text();
}

TEST_F(NetworkOptions, KeepToLoopbackWithoutCertificates) {
  opts = {};
  for (const auto* listen : {"0.0.0.0:0", "[::]:0", "192.0.2.1:5000"}) {
    opts.listen = listen;
    EXPECT_THAT(fault(), AllOf(HasSubstr("listen"), HasSubstr("loopback")));
  }
  opts.insecure = true;
  EXPECT_EQ(fault(), "");
  ours.give(opts, "engine");
  opts.insecure = false;
  EXPECT_EQ(fault(), "");
}

TEST_F(NetworkOptions, NeedAnAddress) {
  for (const auto* listen :
       {"127.0.0.1", ":5000", "127.0.0.1:", "127.0.0.1:65536", "::1:5000",
        "[::1:5000", "a b:1", "127.0.0.1:+1"}) {
    opts.listen = listen;
    EXPECT_THAT(fault(), AllOf(HasSubstr("listen is"), HasSubstr(listen)));
  }
  opts.listen = "no-such-host.invalid:5000";
  EXPECT_THAT(fault(), HasSubstr("cannot be found"));
}

TEST_F(NetworkOptions, NeedATimeThatMakesSense) {
  opts.detection = 99ms;
  EXPECT_THAT(fault(), HasSubstr("detection is 99 ms"));
  opts.detection = 1h + 1ms;
  EXPECT_THAT(fault(), HasSubstr("detection"));
}

// -- with a runtime -----------------------------------------------------------

class StartedNetwork : public ::testing::Test {
protected:
  StartedNetwork() {
    engine.groups.front().tokens_per_block = 4;
    engine.blocks_per_chunk = 1;
    engine.tokens_per_hash = 4;
    engine.host_bytes = 1'024;
    engine.workers.resize(1);
    engine.workers[0].where = worker_place::kind::dials_in;
  }

  std::shared_ptr<network> make() const {
    return make_network(opts).value();
  }

  std::string fault() {
    if (engine.network == nullptr)
      engine.network = make();
    auto started = runtime::start(engine);
    return started ? "" : started.failure().text;
  }

  std::string fault_of_worker() {
    if (work.shared.network == nullptr)
      work.shared.network = make();
    auto started = worker::start(work);
    return started ? "" : started.failure().text;
  }

  network_options opts;
  options engine;
  worker_options work;
};

TEST_F(StartedNetwork, NeedsSomewhereToListenOrSomebodyToDial) {
  EXPECT_THAT(fault(), HasSubstr("listens nowhere"));
}

TEST_F(StartedNetwork, SaysThatThePortIsTaken) {
  opts.listen = "127.0.0.1:0";
  engine.network = make();
  auto first = runtime::start(engine);
  ASSERT_TRUE(first);
  opts.listen = address_of(*engine.network);
  engine.network = nullptr;
  EXPECT_THAT(fault(), AllOf(HasSubstr("cannot listen on " + opts.listen),
                             HasSubstr("in use")));
}

TEST_F(StartedNetwork, ServesOneRuntime) {
  opts.listen = "127.0.0.1:0";
  engine.network = make();
  auto first = runtime::start(engine);
  ASSERT_TRUE(first);
  EXPECT_THAT(fault(), HasSubstr("make one for each"));
  // The first one has lost nothing.
  EXPECT_TRUE(test::intruder{address_of(*engine.network)}.connected());
}

TEST_F(StartedNetwork, SaysWhereNobodyMayDial) {
  engine.workers[0].where = worker_place::kind::dialed;
  engine.workers[0].address = "192.0.2.1:5000";
  EXPECT_THAT(fault(),
              AllOf(HasSubstr("192.0.2.1:5000"), HasSubstr("not loopback")));
  engine.network = nullptr;
  engine.workers[0].address = "no-such-host.invalid:5000";
  EXPECT_THAT(fault(), HasSubstr("cannot be found"));
}

TEST_F(StartedNetwork, RefusesAWorkerThatMakesNoSense) {
  work.shared = engine;
  work.shared.network = nullptr;
  opts.listen = "127.0.0.1:0";
  EXPECT_THAT(fault_of_worker(), HasSubstr("ranks is empty"));
  work.ranks = {1};
  EXPECT_THAT(fault_of_worker(), HasSubstr("rank 1"));
  work.ranks = {0, 0};
  EXPECT_THAT(fault_of_worker(), HasSubstr("twice"));
  work.ranks = {0};
  work.shared.host_bytes = 0;
  EXPECT_THAT(fault_of_worker(), HasSubstr("host_bytes"));
  work.shared.host_bytes = 1'024;
  work.scheduler = "nowhere";
  EXPECT_THAT(fault_of_worker(), HasSubstr("nowhere"));
}

TEST_F(StartedNetwork, EndsAtOnceWhileItDialsABlackHole) {
  opts.insecure = true;
  engine.workers[0].where = worker_place::kind::dialed;
  engine.workers[0].address = "192.0.2.1:5000"; // Reserved: nobody is there.
  engine.network = make();
  const auto before = std::chrono::steady_clock::now();
  {
    auto started = runtime::start(engine);
    ASSERT_TRUE(started);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, opts.detection);
}

} // namespace
} // namespace kvtide
