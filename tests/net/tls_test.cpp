// SPDX-License-Identifier: Apache-2.0

/// @file
/// Who gets through the port of an engine with certificates, and who does not.

#include "tests/net/authority.hpp"
#include "tests/net/deployment.hpp"
#include "tests/net/intruder.hpp"
#include "tests/net/log_ear.hpp"
#include "tests/net/tls_client.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <openssl/ssl.h>
#include <string>

namespace kvtide {
namespace {

class Tls : public ::testing::Test, public test::deployment {
protected:
  Tls() {
    ours.give(engine_side, "engine");
    ours.give(worker_side, "worker");
  }

  std::string address() const {
    return address_of(*engine_network);
  }

  /// Starts a worker that is not let in.
  void start_stranger() {
    auto made = make_network(worker_side);
    ASSERT_TRUE(made) << made.failure().text;
    auto opts = worker_options{};
    opts.shared = shared;
    opts.shared.network = made.value();
    opts.ranks = {1};
    opts.scheduler = address();
    auto started = worker::start(opts);
    ASSERT_TRUE(started) << started.failure().text;
    far.emplace(std::move(started).value());
  }

  test::scratch_folder folder;
  test::authority ours{folder, "ours"};
  test::authority others{folder, "others"};
  test::log_ear ear;
};

TEST_F(Tls, ServesThoseWithACertificate) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
}

TEST_F(Tls, ServesARankThatIsDialed) {
  engine_dials = true;
  engine_side.listen.clear();
  worker_side.listen = "127.0.0.1:0";
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
}

TEST_F(Tls, RefusesACertificateOfSomebodyElse) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  others.give(worker_side, "worker");
  // It trusts the engine, but the engine does not trust it.
  worker_side.trusted = ours.trusted();
  ASSERT_NO_FATAL_FAILURE(start_stranger());
  EXPECT_NE(ear.await("turned 127.0.0.1:"), "");
  EXPECT_NE(ear.await("certificate verify failed"), "") << ear.text();
  EXPECT_NE(ear.await("cannot reach the scheduler"), "") << ear.text();
  EXPECT_EQ(ear.count("rank 1 is let in"), 0U);
}

TEST_F(Tls, DoesNotJoinAnEngineThatItDoesNotTrust) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  worker_side.trusted = others.trusted();
  ASSERT_NO_FATAL_FAILURE(start_stranger());
  const auto line = ear.await("cannot reach the scheduler");
  EXPECT_NE(line.find("certificate verify failed"), std::string::npos) << line;
  EXPECT_EQ(ear.count("rank 1 is let in"), 0U);
}

TEST_F(Tls, RefusesAPeerWithoutTls) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  worker_side.certificate.clear();
  worker_side.private_key.clear();
  worker_side.trusted.clear();
  ASSERT_NO_FATAL_FAILURE(start_stranger());
  EXPECT_NE(ear.await("turned 127.0.0.1:"), "") << ear.text();
  EXPECT_NE(ear.await("cannot reach the scheduler"), "") << ear.text();
  EXPECT_EQ(ear.count("rank 1 is let in"), 0U);
}

TEST_F(Tls, IsNotServedWithoutIt) {
  const auto with = worker_side;
  engine_side = {};
  engine_side.listen = "127.0.0.1:0";
  ASSERT_NO_FATAL_FAILURE(start_engine());
  worker_side = with;
  ASSERT_NO_FATAL_FAILURE(start_stranger());
  EXPECT_NE(ear.await("it did not speak the protocol"), "") << ear.text();
  EXPECT_NE(ear.await("cannot reach the scheduler"), "") << ear.text();
}

TEST_F(Tls, RefusesWhoShowsNoneOrAnExpiredOne) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  auto who = network_options{};
  EXPECT_FALSE(test::try_tls(address(), who).let_in);
  EXPECT_NE(ear.await("peer did not return a certificate"), "") << ear.text();
  ours.give(who, "late", {-7'200, -3'600});
  EXPECT_FALSE(test::try_tls(address(), who).let_in);
  EXPECT_NE(ear.await("certificate verify failed"), "") << ear.text();
  ours.give(who, "fine");
  EXPECT_TRUE(test::try_tls(address(), who).let_in);
}

TEST_F(Tls, SpeaksVersions12And13WithoutRenegotiation) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  auto who = network_options{};
  ours.give(who, "somebody");
  EXPECT_EQ(test::try_tls(address(), who).version, "TLSv1.3");
  const auto older = test::try_tls(address(), who, TLS1_2_VERSION, true);
  EXPECT_EQ(older.version, "TLSv1.2");
  EXPECT_FALSE(older.renegotiated);
  EXPECT_EQ(test::try_tls(address(), who, TLS1_1_VERSION).version, "");
  EXPECT_EQ(test::try_tls(address(), who, TLS1_VERSION).version, "");
}

// CAF would end the process.
TEST_F(Tls, GoesOnWhenItsFilesAreSpoiled) {
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  const auto whole = engine_side.certificate;
  auto second = network_options{};
  ours.give(second, "second");
  std::rename(whole.c_str(), folder.path("away").c_str());
  EXPECT_FALSE(test::try_tls(address(), second).let_in);
  EXPECT_NE(ear.await("own files"), "") << ear.text();
  ASSERT_NO_FATAL_FAILURE(serve());
  std::rename(folder.path("away").c_str(), whole.c_str());
  EXPECT_TRUE(test::try_tls(address(), second).let_in);
  ASSERT_NO_FATAL_FAILURE(serve());
}

// -- tools/make-certificates --------------------------------------------------

/// Runs the script with `words`.
int run_script(const std::string& words) {
  const auto line
    = std::string{KVTIDE_MAKE_CERTIFICATES} + " " + words + " >/dev/null 2>&1";
  return std::system(line.c_str());
}

class MakeCertificates : public Tls {
protected:
  void SetUp() override {
    if (std::system("openssl version >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "there is no program openssl";
  }

  void name_files(network_options& opts, const std::string& name) {
    opts.certificate = folder.path("made/" + name + ".pem");
    opts.private_key = folder.path("made/" + name + ".key");
    opts.trusted = folder.path("made/trusted.pem");
  }
};

TEST_F(MakeCertificates, MakesThemOfOneAuthority) {
  ASSERT_EQ(run_script(folder.path("made") + " engine worker"), 0);
  name_files(engine_side, "engine");
  name_files(worker_side, "worker");
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
  EXPECT_EQ(ear.count("chmod"), 0U) << ear.text();
  // More of them, and none twice.
  EXPECT_EQ(run_script(folder.path("made") + " another"), 0);
  EXPECT_NE(run_script(folder.path("made") + " another"), 0);
  auto third = network_options{};
  name_files(third, "another");
  EXPECT_TRUE(test::try_tls(address(), third).let_in);
}

TEST_F(MakeCertificates, MakesThoseThatStandForThemselves) {
  ASSERT_EQ(run_script("--pinned " + folder.path("made") + " engine worker"),
            0);
  name_files(engine_side, "engine");
  name_files(worker_side, "worker");
  ASSERT_NO_FATAL_FAILURE(start_engine());
  ASSERT_NO_FATAL_FAILURE(start_worker());
  ASSERT_NO_FATAL_FAILURE(await_rank());
  ASSERT_NO_FATAL_FAILURE(serve());
  // One that is pinned elsewhere.
  ASSERT_EQ(run_script("--pinned " + folder.path("elsewhere") + " worker"), 0);
  auto other = network_options{};
  other.certificate = folder.path("elsewhere/worker.pem");
  other.private_key = folder.path("elsewhere/worker.key");
  EXPECT_FALSE(test::try_tls(address(), other).let_in);
}

TEST_F(MakeCertificates, RefusesWhatMakesNoSense) {
  EXPECT_EQ(run_script("--help"), 0);
  EXPECT_NE(run_script(""), 0);
  EXPECT_NE(run_script(folder.path("made")), 0);
  EXPECT_NE(run_script("--days soon " + folder.path("made") + " x"), 0);
  EXPECT_NE(run_script("--fast " + folder.path("made") + " x"), 0);
  EXPECT_NE(run_script(folder.path("made") + " ../x"), 0);
  EXPECT_NE(run_script(folder.path("made") + " trusted"), 0);
}

} // namespace
} // namespace kvtide
