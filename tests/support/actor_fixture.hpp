// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/support/actor_world.hpp"

#include <gtest/gtest.h>

namespace kvtide::test {

/// One world per test.
class actor_fixture : public ::testing::Test {
protected:
  actor_world world;
};

} // namespace kvtide::test
