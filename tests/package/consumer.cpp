// SPDX-License-Identifier: Apache-2.0

#include "kvtide/options.hpp"

int main() {
  const auto opts = kvtide::options{};
  return opts.rules == kvtide::rule_set::safe ? 0 : 1;
}
