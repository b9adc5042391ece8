// SPDX-License-Identifier: Apache-2.0

/// @file
/// Scenarios as parameters of tests: they go by their names.

#pragma once

#include "tests/explore/scenario.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace kvtide::explore {

inline void PrintTo(const scenario& x, std::ostream* out) {
  *out << x.name;
}

inline std::string name_of(const ::testing::TestParamInfo<scenario>& row) {
  return row.param.name;
}

} // namespace kvtide::explore
