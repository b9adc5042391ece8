// SPDX-License-Identifier: Apache-2.0

/// @file
/// Replays the recorded files of level `host_pool` (docs/conformance.md)
/// against the pool alone.

#include "core/cache.hpp"
#include "tests/core/pool_keys.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kvtide::core {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

fs::path vector_folder() {
  if (const auto* told = std::getenv("KVTIDE_CONFORMANCE"))
    return told;
  return KVTIDE_CONFORMANCE_DIR;
}

std::vector<fs::path> pool_files() {
  auto out = std::vector<fs::path>{};
  if (!fs::is_directory(vector_folder()))
    return out;
  for (const auto& entry : fs::recursive_directory_iterator(vector_folder())) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("pool_") && name.ends_with(".jsonl"))
      out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<chunk_key> keys_of_json(const json& names) {
  auto out = std::vector<chunk_key>{};
  for (const auto& name : names)
    out.push_back(named_key(name.get<std::string>()));
  return out;
}

json names_of(const std::vector<chunk_key>& keys) {
  auto out = json::array();
  for (const auto& key : keys)
    out.push_back(name_of(key));
  return out;
}

/// Drives one pool and answers each line as the files do.
class replayer {
public:
  explicit replayer(const json& config)
    : pool_({config.at("host_chunks").get<std::size_t>(),
             config.at("policy") == "arc" ? eviction_policy::arc
                                          : eviction_policy::lru,
             config.at("store_threshold").get<std::uint32_t>(),
             {}},
            reference_rules) {
    // nop
  }

  json answer(const json& line) {
    const auto op = line.at("op").get<std::string>();
    if (op == "lookup_key")
      return {{"result", presence_name(pool_.lookup_key(
                           named_key(line.at("key").get<std::string>())))}};
    if (op == "state")
      return state();
    if (op == "take_events")
      return {{"events", events()}};
    if (op == "reset") {
      pool_.reset({});
      return nullptr;
    }
    const auto keys = keys_of_json(line.at("keys"));
    if (op == "prepare_store")
      return {{"result", prepare_store(keys)}};
    if (op == "prepare_load")
      return {{"host_chunks", pool_.prepare_load(keys).slots}};
    if (op == "touch")
      pool_.touch(keys);
    else if (op == "complete_load")
      pool_.complete_load(keys);
    else if (op == "complete_store")
      pool_.complete_store(keys, line.at("success").get<bool>());
    else
      ADD_FAILURE() << "unknown call " << op;
    return nullptr;
  }

private:
  static const char* presence_name(host_pool::presence what) {
    switch (what) {
      case host_pool::presence::hit:
        return "hit";
      case host_pool::presence::pending:
        return "hit_pending";
      default:
        return "miss";
    }
  }

  json prepare_store(const std::vector<chunk_key>& keys) {
    const auto offer = offer_of(keys);
    const auto grant = pool_.prepare_store(offer);
    if (grant.refused())
      return nullptr;
    auto out = json{{"keys", json::array()},
                    {"host_chunks", json::array()},
                    {"evicted", names_of(grant.evicted)}};
    for (const auto& chunk : grant.accepted) {
      out["keys"].push_back(name_of(offer.candidates[chunk.candidate].key));
      out["host_chunks"].push_back(chunk.slot);
    }
    return out;
  }

  json state() {
    const auto now = pool_.state();
    auto out = json{{"free", now.free},
                    {"evictable", now.evictable},
                    {"writing", now.writing}};
    if (now.lru)
      out["lru"] = names_of(*now.lru);
    if (now.arc)
      out["arc"] = {{"t1", names_of(now.arc->t1)},
                    {"t2", names_of(now.arc->t2)},
                    {"b1", names_of(now.arc->b1)},
                    {"b2", names_of(now.arc->b2)},
                    {"target", now.arc->target}};
    return out;
  }

  json events() {
    auto out = json::array();
    for (const auto& event : pool_.take_events()) {
      if (event.kind == cache_event::kind_t::removed) {
        out.push_back({{"removed", names_of(event.removed)}});
        continue;
      }
      auto names = std::set<std::string>{};
      for (const auto& chunk : event.stored)
        names.insert(name_of(chunk.key));
      out.push_back({{"stored", names}});
    }
    return out;
  }

  host_pool pool_;
};

class PoolVectors : public ::testing::TestWithParam<fs::path> {};

TEST_P(PoolVectors, ReplayWithoutAMismatch) {
  auto file = std::ifstream{GetParam()};
  auto text = std::string{};
  ASSERT_TRUE(std::getline(file, text));
  auto uut = replayer{json::parse(text)};
  for (auto number = 2; std::getline(file, text); ++number) {
    const auto line = json::parse(text);
    const auto answer = uut.answer(line);
    if (line.contains("expect")) {
      ASSERT_EQ(answer, line.at("expect")) << "line " << number << ": " << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PoolVectors, ::testing::ValuesIn(pool_files()),
                         [](const auto& param) {
                           return param.param.parent_path().filename().string()
                                + "_" + param.param.stem().string();
                         });

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PoolVectors);

TEST(PoolVectorFolder, IsThere) {
  if (pool_files().empty())
    GTEST_SKIP() << "no recorded files in " << vector_folder();
}

} // namespace
} // namespace kvtide::core
