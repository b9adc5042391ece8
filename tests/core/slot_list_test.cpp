// SPDX-License-Identifier: Apache-2.0

#include "core/slot_list.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace kvtide::core {
namespace {

std::vector<slot_id> slots_of(const slot_list& list) {
  auto out = std::vector<slot_id>{};
  for (auto at = list.oldest(); at != slot_list::none; at = list.newer(at))
    out.push_back(at);
  return out;
}

TEST(SlotList, IsEmptyAtFirst) {
  const auto uut = slot_list{};
  EXPECT_EQ(uut.oldest(), slot_list::none);
  EXPECT_EQ(uut.size(), 0u);
  EXPECT_FALSE(uut.contains(3));
}

TEST(SlotList, InsertsDirectlyBeforeASlot) {
  auto uut = slot_list{};
  uut.push_newest(5);
  uut.push_newest(1);
  uut.insert_older(9, 1);
  uut.insert_older(2, 5);
  EXPECT_EQ(slots_of(uut), (std::vector<slot_id>{2, 5, 9, 1}));
}

RC_GTEST_PROP(SlotList, BehavesLikeAVector, ()) {
  auto uut = slot_list{};
  auto model = std::vector<slot_id>{};
  const auto turns = *rc::gen::inRange(0, 60);
  for (auto turn = 0; turn < turns; ++turn) {
    const auto slot = *rc::gen::inRange<slot_id>(0, 8);
    const auto pos = std::find(model.begin(), model.end(), slot);
    const auto there = pos != model.end();
    RC_ASSERT(uut.contains(slot) == there);
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        if (there)
          break;
        uut.push_newest(slot);
        model.push_back(slot);
        break;
      case 1:
        if (!there)
          break;
        uut.erase(slot);
        model.erase(pos);
        break;
      case 2:
        if (!there)
          break;
        uut.move_to_newest(slot);
        std::rotate(pos, pos + 1, model.end());
        break;
      default:
        if (there || model.empty())
          break;
        const auto than = *rc::gen::elementOf(model);
        uut.insert_older(slot, than);
        model.insert(std::find(model.begin(), model.end(), than), slot);
        break;
    }
    RC_ASSERT(slots_of(uut) == model);
    RC_ASSERT(uut.size() == model.size());
  }
}

} // namespace
} // namespace kvtide::core
