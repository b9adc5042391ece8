// SPDX-License-Identifier: Apache-2.0

/// @file
/// The host pool as C9 to C12 (docs/conformance.md) read, with linear searches
/// and no shortcuts: what the real one is compared with. Reference rules only.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::core {

struct naive_pool {
  using names = std::vector<std::string>;

  struct row {
    std::size_t slot = 0;
    int count = -1;
  };

  struct grant {
    names keys;
    std::vector<std::size_t> slots;
    names evicted;
  };

  std::size_t slots = 0;
  bool arc = false;
  int threshold = 1;
  std::map<std::string, row> rows;
  std::map<std::string, int> uses;
  std::size_t unused = 0;
  std::vector<std::size_t> freed;
  names lru;
  names t1;
  names t2;
  names b1;
  names b2;
  double target = 0;

  static bool has(const names& list, const std::string& key) {
    return std::find(list.begin(), list.end(), key) != list.end();
  }

  static void to_newest(names& list, const std::string& key) {
    std::erase(list, key);
    list.push_back(key);
  }

  std::size_t free() const {
    return freed.size() + (slots - unused);
  }

  std::size_t idle() const {
    return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(),
                    [](const auto& x) { return x.second.count == 0; }));
  }

  std::string lookup(const std::string& key) {
    ++uses[key];
    if (!rows.contains(key))
      return "miss";
    return rows[key].count == -1 ? "pending" : "hit";
  }

  void touch(const names& keys) {
    for (auto at = keys.rbegin(); at != keys.rend(); ++at) {
      if (!arc) {
        if (has(lru, *at))
          to_newest(lru, *at);
      } else if (has(t1, *at)) {
        std::erase(t1, *at);
        (rows[*at].count == -1 ? t1 : t2).push_back(*at);
      } else if (has(t2, *at)) {
        to_newest(t2, *at);
      } else if (has(b1, *at)) {
        target = std::min(target + ratio(b2, b1), static_cast<double>(slots));
        to_newest(b1, *at);
      } else if (has(b2, *at)) {
        target = std::max(target - ratio(b1, b2), 0.0);
        to_newest(b2, *at);
      }
    }
  }

  static double ratio(const names& other, const names& hit) {
    return std::max(1.0, static_cast<double>(other.size())
                           / static_cast<double>(hit.size()));
  }

  std::optional<grant> prepare_store(const names& offered) {
    auto out = grant{};
    auto kept = names{};
    for (const auto& key : offered)
      if (threshold < 2 || uses[key] >= threshold)
        kept.push_back(key);
    for (const auto& key : kept)
      if (!rows.contains(key))
        out.keys.push_back(key);
    if (out.keys.size() > free()) {
      const auto victims = evict(out.keys.size() - free(), kept);
      if (!victims)
        return std::nullopt;
      out.evicted = *victims;
      for (const auto& key : out.evicted) {
        freed.push_back(rows[key].slot);
        rows.erase(key);
      }
    }
    for (const auto& key : out.keys) {
      auto slot = unused;
      if (unused < slots) {
        ++unused;
      } else {
        slot = freed.back();
        freed.pop_back();
      }
      out.slots.push_back(slot);
      rows[key] = {slot, -1};
      if (arc) {
        t1.push_back(key);
        std::erase(b1, key);
        std::erase(b2, key);
      }
    }
    return out;
  }

  std::optional<names> evict(std::size_t n, const names& keep) {
    auto out = names{};
    if (n > idle())
      return std::nullopt;
    const auto next = [&](const names& list) -> std::optional<std::string> {
      for (const auto& key : list)
        if (rows[key].count == 0 && !has(keep, key) && !has(out, key))
          return key;
      return std::nullopt;
    };
    auto size = static_cast<double>(t1.size());
    while (out.size() < n) {
      auto victim = std::optional<std::string>{};
      if (!arc) {
        victim = next(lru);
      } else {
        if (size >= std::floor(target))
          victim = next(t1);
        if (victim)
          --size;
        else
          victim = next(t2);
      }
      if (!victim)
        return std::nullopt;
      out.push_back(*victim);
    }
    for (const auto& key : out) {
      if (has(t1, key))
        b1.push_back(key);
      if (has(t2, key))
        b2.push_back(key);
      for (auto* list : {&lru, &t1, &t2})
        std::erase(*list, key);
    }
    for (auto* ghosts : {&b1, &b2})
      while (ghosts->size() > slots)
        ghosts->erase(ghosts->begin());
    return out;
  }

  void complete_store(const names& keys, bool success) {
    for (const auto& key : keys) {
      if (!rows.contains(key) || rows[key].count != -1)
        continue;
      if (success) {
        rows[key].count = 0;
        if (!arc)
          lru.push_back(key);
      } else {
        freed.push_back(rows[key].slot);
        rows.erase(key);
        std::erase(t1, key);
        std::erase(t2, key);
      }
    }
  }

  std::optional<std::vector<std::size_t>> prepare_load(const names& keys) {
    auto out = std::vector<std::size_t>{};
    for (const auto& key : keys)
      if (!rows.contains(key) || rows[key].count == -1)
        return std::nullopt;
    for (const auto& key : keys) {
      ++rows[key].count;
      std::erase(lru, key);
      out.push_back(rows[key].slot);
    }
    return out;
  }

  void complete_load(const names& keys) {
    for (const auto& key : keys)
      if (--rows[key].count == 0 && !arc)
        lru.push_back(key);
  }

  void reset() {
    rows.clear();
    freed.clear();
    unused = 0;
    for (auto* list : {&lru, &t1, &t2, &b1, &b2})
      list->clear();
    target = 0;
  }
};

} // namespace kvtide::core
