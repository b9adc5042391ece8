// SPDX-License-Identifier: Apache-2.0

#include "core/linked_keys.hpp"
#include "tests/core/pool_keys.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::core {
namespace {

TEST(LinkedKeys, KeepANumberWhileTheKeyStays) {
  auto uut = linked_keys{};
  ++uut.push_newest(named_key("a"));
  uut.push_newest(named_key("b"));
  ++uut.push_newest(named_key("a"));
  EXPECT_EQ(uut.number(named_key("a")), 2u);
  EXPECT_EQ(uut.number(named_key("b")), 0u);
  EXPECT_EQ(uut.number(named_key("c")), 0u);
  uut.erase(named_key("a"));
  uut.erase(named_key("a"));
  EXPECT_EQ(uut.size(), 1u);
  EXPECT_EQ(uut.push_newest(named_key("a")), 0u);
}

TEST(LinkedKeys, TellGroupsAndModelsApart) {
  auto uut = linked_keys{};
  uut.push_newest(named_key("a/0", 7));
  EXPECT_TRUE(uut.contains(named_key("a/0", 7)));
  EXPECT_FALSE(uut.contains(named_key("a/1", 7)));
  EXPECT_FALSE(uut.contains(named_key("a/0", 8)));
}

RC_GTEST_PROP(LinkedKeys, BehaveLikeAVector, ()) {
  auto uut = linked_keys{};
  auto model = std::vector<std::string>{};
  const auto turns = *rc::gen::inRange(0, 80);
  for (auto turn = 0; turn < turns; ++turn) {
    const auto name = std::to_string(*rc::gen::inRange(0, 12)) + "/0";
    const auto key = named_key(name);
    RC_ASSERT(uut.contains(key)
              == (std::find(model.begin(), model.end(), name) != model.end()));
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        uut.erase(key);
        std::erase(model, name);
        break;
      case 1: {
        const auto size = *rc::gen::inRange<std::size_t>(0, 12);
        uut.shorten(size);
        while (model.size() > size)
          model.erase(model.begin());
        break;
      }
      default:
        uut.push_newest(key);
        std::erase(model, name);
        model.push_back(name);
        break;
    }
    RC_ASSERT(names_of(uut.keys()) == model);
    RC_ASSERT(uut.size() == model.size());
  }
}

} // namespace
} // namespace kvtide::core
