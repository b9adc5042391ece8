// SPDX-License-Identifier: Apache-2.0

#include "core/worker_places.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace kvtide::core {
namespace {

using kind = worker_place::kind;

class WorkerPlaces : public ::testing::Test {
protected:
  WorkerPlaces() {
    opts.ranks = 3;
    opts.host_bytes = 1;
    opts.workers.resize(3);
    // Nobody looks into it here.
    opts.network = std::shared_ptr<network>{std::make_shared<int>(),
                                            reinterpret_cast<network*>(&dummy)};
  }

  std::string fault() const {
    return fault_of_workers(opts).text;
  }

  int dummy = 0;
  options opts;
};

TEST_F(WorkerPlaces, AreAllHereUnlessTold) {
  opts.workers.clear();
  EXPECT_EQ(fault(), "");
  EXPECT_TRUE(is_here(opts, 2));
  EXPECT_FALSE(any_elsewhere(opts));
  opts.workers.resize(3);
  EXPECT_EQ(fault(), "");
  EXPECT_FALSE(any_elsewhere(opts));
  opts.network = nullptr;
  opts.host_bytes = 0;
  EXPECT_EQ(fault(), "");
}

TEST_F(WorkerPlaces, MayBeMixed) {
  opts.workers[1].where = kind::dials_in;
  opts.workers[2] = {kind::dialed, "10.0.0.1:5000"};
  EXPECT_EQ(fault(), "");
  EXPECT_TRUE(is_here(opts, 0));
  EXPECT_FALSE(is_here(opts, 1));
  EXPECT_FALSE(is_here(opts, 2));
  EXPECT_TRUE(any_elsewhere(opts));
}

TEST_F(WorkerPlaces, DialEachAddressOnce) {
  opts.workers[0] = {kind::dialed, "10.0.0.1:5000"};
  opts.workers[1] = {kind::dialed, "10.0.0.2:5000"};
  opts.workers[2] = {kind::dialed, "10.0.0.1:5000"};
  EXPECT_EQ(dialed_addresses(opts),
            (std::vector<std::string>{"10.0.0.1:5000", "10.0.0.2:5000"}));
}

TEST_F(WorkerPlaces, HaveToFitTheRest) {
  opts.workers.resize(2);
  EXPECT_NE(fault().find("workers has 2 entries"), std::string::npos);
  opts.workers.resize(3);
  opts.workers[1] = {kind::dialed, "nowhere"};
  EXPECT_NE(fault().find("workers[1].address is \"nowhere\""),
            std::string::npos)
    << fault();
  opts.workers[1] = {kind::dialed, "10.0.0.1:0"};
  EXPECT_NE(fault().find("port 0"), std::string::npos) << fault();
  opts.workers[1] = {kind::dials_in, "10.0.0.1:1"};
  EXPECT_NE(fault().find("only a worker that is dialed"), std::string::npos);
  opts.workers[1] = {static_cast<kind>(7), {}};
  EXPECT_NE(fault().find("workers[1].where"), std::string::npos);
  opts.workers[1] = {kind::dials_in, {}};
  EXPECT_EQ(fault(), "");
  opts.host_bytes = 0;
  EXPECT_NE(fault().find("host_bytes is 0"), std::string::npos) << fault();
  opts.host_bytes = 1;
  opts.network = nullptr;
  EXPECT_NE(fault().find("network is null"), std::string::npos) << fault();
}

TEST_F(WorkerPlaces, OfOneProcessAreEachThereOnce) {
  EXPECT_EQ(fault_of_hosted(opts, {2, 0}).text, "");
  EXPECT_NE(fault_of_hosted(opts, {}).code, ec::none);
  EXPECT_NE(fault_of_hosted(opts, {3}).code, ec::none);
  EXPECT_NE(fault_of_hosted(opts, {1, 2, 1}).code, ec::none);
}

} // namespace
} // namespace kvtide::core
