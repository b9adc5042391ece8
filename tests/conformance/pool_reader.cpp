// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/pool_reader.hpp"

#include "tests/conformance/key_text.hpp"
#include "tests/conformance/limits.hpp"
#include "tests/conformance/want.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace kvtide::conformance {

pool_reader::pool_reader(fields& config) {
  auto& opts = result_.opts;
  // A pool file does not say how many groups its keys may name.
  opts.groups.assign(max_groups, group_options{1, 0, false});
  opts.blocks_per_chunk = 1;
  opts.tokens_per_hash = 1;
  opts.rules = rule_set::reference;
  result_.host_chunks = static_cast<std::uint64_t>(
    config.number("host_chunks", 0, max_host_chunks));
  opts.host_bytes = std::max<std::uint64_t>(result_.host_chunks, 1);
  opts.cache_events = true;
  const auto& policy = config.text("policy");
  if (policy != "lru" && policy != "arc")
    throw unreadable{"'policy' is \"" + policy + "\", want one of lru, arc"};
  opts.policy = policy == "arc" ? eviction_policy::arc : eviction_policy::lru;
  opts.store_threshold = static_cast<std::uint32_t>(config.number(
    "store_threshold", 1, std::numeric_limits<std::uint32_t>::max()));
  auto shape = core::make_layout(opts);
  if (!shape)
    throw unreadable{shape.failure().text};
  result_.shape = std::make_shared<core::layout>(std::move(shape).value());
}

void pool_reader::read(fields& line, const std::string& op,
                       std::size_t number) {
  auto out = pool_line{};
  out.number = number;
  out.op = op;
  if (op == "lookup_key")
    out.call = lookup_key{
      to_key(line.at("key"), "key", max_groups, result_.shape->model)};
  else if (op == "touch")
    out.call = touch{keys(line)};
  else if (op == "prepare_store")
    out.call = prepare_store{keys(line)};
  else if (op == "complete_store")
    out.call = complete_store{keys(line), line.truth("success")};
  else if (op == "prepare_load")
    out.call = prepare_load{keys(line)};
  else if (op == "complete_load")
    out.call = complete_load{keys(line)};
  else if (op == "reset")
    out.call = reset_cache{};
  else if (op == "take_events")
    out.call = take_events{};
  else if (op == "state")
    out.call = pool_state{};
  else
    throw unreadable{"unknown op '" + op + "' for level 'host_pool'"};
  if (const auto* expect = line.find("expect")) {
    auto in = fields{*expect, "expect"};
    out.want = want(in, op);
    in.finish();
  }
  result_.lines.push_back(std::move(out));
}

std::vector<chunk_key> pool_reader::keys(fields& line) {
  return line.each("keys", [this](const json& value, const auto& where) {
    return to_key(value, where, max_groups, result_.shape->model);
  });
}

json pool_reader::want(fields& expect, const std::string& op) const {
  auto result = json::object();
  if (op == "lookup_key") {
    static constexpr auto words = std::array{"miss", "hit_pending", "hit"};
    const auto& word = expect.text("result");
    if (std::find(words.begin(), words.end(), word) == words.end())
      throw unreadable{"'expect.result' is \"" + word
                       + "\", want one of miss, hit_pending, hit"};
    result["result"] = word;
  } else if (op == "prepare_store") {
    const auto& value = expect.at("result");
    result["result"] = nullptr;
    if (!value.is_null()) {
      auto in = fields{value, expect.path("result")};
      result["result"]
        = {{"keys", want_keys(in.at("keys"), in.path("keys"), max_groups)},
           {"host_chunks", want_numbers(in.at("host_chunks"),
                                        in.path("host_chunks"), max_block)},
           {"evicted",
            want_keys(in.at("evicted"), in.path("evicted"), max_groups)}};
      in.finish();
    }
  } else if (op == "prepare_load") {
    result["host_chunks"] = want_numbers(expect.at("host_chunks"),
                                         expect.path("host_chunks"), max_block);
  } else if (op == "take_events") {
    result["events"]
      = want_events(expect.at("events"), expect.path("events"), max_groups);
  } else if (op == "state") {
    result = want_state(expect);
  }
  return result;
}

json pool_reader::want_state(fields& expect) const {
  auto result = json::object();
  for (const auto* name : {"free", "evictable", "writing"})
    result[name] = expect.number(name, 0, max_host_chunks);
  if (result_.opts.policy == eviction_policy::lru) {
    result["lru"] = want_keys(expect.at("lru"), expect.path("lru"), max_groups);
    return result;
  }
  auto in = fields{expect.at("arc"), expect.path("arc")};
  auto& arc = result["arc"];
  for (const auto* name : {"t1", "t2", "b1", "b2"})
    arc[name] = want_keys(in.at(name), in.path(name), max_groups);
  if (!in.at("target").is_number())
    throw unreadable{"'expect.arc.target' is not a number"};
  arc["target"] = in.at("target").get<double>();
  in.finish();
  return result;
}

} // namespace kvtide::conformance
