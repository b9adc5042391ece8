// SPDX-License-Identifier: Apache-2.0

// Two threads append to one key list, which only its owner may.

#include "core/key_list.hpp"

#include <thread>

int main() {
  auto keys = kvtide::core::key_list{0, 0};
  const auto append = [&keys] {
    for (auto i = 0; i < 1'000; ++i)
      keys.append(kvtide::prefix_hash{&i, sizeof(i)});
  };
  auto other = std::thread{append};
  append();
  other.join();
}
