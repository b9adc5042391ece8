// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/open_files.hpp"
#include "tests/serve_http/running_server.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

namespace serve {
namespace {

class OpenFiles : public running_server {};

// Leaves room for this many more files, as long as it lives.
class few_files {
public:
  explicit few_files(rlim_t more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    // The lowest free one: all below it are taken.
    const auto next = dup(0);
    close(next);
    auto limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(next) + more;
    setrlimit(RLIMIT_NOFILE, &limit);
  }

  few_files(const few_files&) = delete;
  few_files& operator=(const few_files&) = delete;

  ~few_files() {
    setrlimit(RLIMIT_NOFILE, &before_);
  }

private:
  rlimit before_{};
};

TEST(OpenFilesPlan, LeavesALimitThatIsEnough) {
  const auto plan = plan_open_files(4'096, 8'192, 1'024);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan.value().soft, 4'096u);
  EXPECT_EQ(plan.value().connections, 1'024u);
}

TEST(OpenFilesPlan, RaisesTheSoftLimitAsFarAsNeeded) {
  const auto plan = plan_open_files(1'024, 8'192, 1'024);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan.value().soft, 1'024u + other_files);
  EXPECT_EQ(plan.value().connections, 1'024u);
}

TEST(OpenFilesPlan, LetsFewerInUnderAHardLimit) {
  const auto plan = plan_open_files(100, 200, 1'024);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan.value().soft, 200u);
  EXPECT_EQ(plan.value().connections, 200u - other_files);
}

TEST(OpenFilesPlan, NeedsRoomForOneClient) {
  EXPECT_EQ(plan_open_files(8, other_files + 1, 5).value().connections, 1u);
  const auto plan = plan_open_files(8, other_files, 5);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.failure().code, kvtide::ec::invalid_options);
  EXPECT_NE(plan.failure().text.find("only 32 files"), std::string::npos);
}

TEST_F(OpenFiles, ThatAreMissingForTheServerAreOneSentence) {
  for (auto more = rlim_t{0}; more < 6; ++more) {
    const auto few = few_files{more};
    const auto opened = http_server::listen(opts, engine);
    ASSERT_FALSE(opened) << more;
    EXPECT_EQ(opened.failure().code, kvtide::ec::out_of_memory) << more;
    EXPECT_NE(opened.failure().text.find("more open files"), std::string::npos)
      << opened.failure().text;
  }
}

TEST_F(OpenFiles, ThatAreMissingForAClientAreStatus503) {
  start();
  EXPECT_EQ(ask(get("/healthz")).status, 200);
  EXPECT_TRUE(await_metric("serve_connections", 1)) << "its own";
  {
    // The client's own socket takes it.
    const auto few = few_files{1};
    for (auto i = 0; i < 3; ++i) {
      auto client = raw_client{port()};
      EXPECT_EQ(client.receive().status, 503) << i;
      EXPECT_TRUE(client.closed());
    }
  }
  EXPECT_EQ(metric("serve_refused_connections_total"), 3);
}

} // namespace
} // namespace serve
