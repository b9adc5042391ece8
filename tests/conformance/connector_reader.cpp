// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/connector_reader.hpp"

#include "tests/conformance/key_text.hpp"
#include "tests/conformance/limits.hpp"
#include "tests/conformance/want.hpp"

#include <algorithm>
#include <limits>

namespace kvtide::conformance {

namespace {

template <class Value>
Value word(const std::string& text, const std::string& where,
           std::initializer_list<std::pair<const char*, Value>> words) {
  auto known = std::string{};
  for (const auto& [name, value] : words) {
    if (text == name)
      return value;
    known += (known.empty() ? "" : ", ") + std::string{name};
  }
  throw unreadable{'\'' + where + "' is \"" + text + "\", want one of "
                   + known};
}

group_options group(const json& value, const std::string& where) {
  auto in = fields{value, where};
  auto out = group_options{};
  out.tokens_per_block = static_cast<std::int32_t>(
    in.number("tokens_per_block", 1, max_group_tokens));
  const auto& window = in.at("sliding_window_tokens");
  out.sliding_window_tokens = window.is_null()
                              ? 0
                              : static_cast<std::int32_t>(in.number(
                                "sliding_window_tokens", 1, max_group_tokens));
  out.draft = in.truth("eagle");
  in.finish();
  return out;
}

/// Takes a cap only if it is an integer from zero on (C2).
token_count cap(const json* value) {
  if (value == nullptr || !value->is_number_integer())
    return no_cap;
  // Whatever does not fit is larger than any request.
  if (value->is_number_unsigned())
    return static_cast<token_count>(
      std::min<std::uint64_t>(value->get<std::uint64_t>(), no_cap));
  const auto number = value->get<std::int64_t>();
  return number >= 0 ? number : no_cap;
}

} // namespace

connector_reader::connector_reader(fields& config) {
  auto& opts = result_.opts;
  opts.groups = config.each("groups", group);
  if (opts.groups.empty() || opts.groups.size() > max_groups)
    throw unreadable{"'groups' has " + std::to_string(opts.groups.size())
                     + " groups, want 1 to " + std::to_string(max_groups)};
  opts.blocks_per_chunk = static_cast<std::int32_t>(
    config.number("blocks_per_chunk", 1, max_group_tokens));
  opts.tokens_per_hash = static_cast<std::int32_t>(
    config.number("tokens_per_hash", 1, max_group_tokens));
  opts.ranks
    = static_cast<std::uint32_t>(config.number("num_workers", 1, max_ranks));
  opts.offload_prompt_only = config.truth("offload_prompt_only");
  opts.enable_prefix_caching = config.truth("enable_prefix_caching");
  opts.cache_events = true;
  result_.host_chunks = static_cast<std::uint64_t>(
    config.number("host_chunks", 0, max_host_chunks));
  // The driver's devices say that a slot has one byte. Zero bytes would turn
  // offloading off.
  opts.host_bytes = std::max<std::uint64_t>(result_.host_chunks, 1);
  opts.policy = word<eviction_policy>(
    config.text("policy"), "policy",
    {{"lru", eviction_policy::lru}, {"arc", eviction_policy::arc}});
  opts.store_threshold = static_cast<std::uint32_t>(config.number(
    "store_threshold", 1, std::numeric_limits<std::uint32_t>::max()));
  opts.rules = word<rule_set>(config.text("finished_rule"), "finished_rule",
                              {{"num_tokens", rule_set::reference},
                               {"committed", rule_set::reference_committed}});
  auto shape = core::make_layout(opts);
  if (!shape)
    throw unreadable{shape.failure().text};
  result_.shape = std::make_shared<core::layout>(std::move(shape).value());
}

void connector_reader::read(fields& line, const std::string& op,
                            std::size_t number) {
  auto out = connector_line{};
  out.number = number;
  out.op = op;
  if (op == "new_request")
    out.call = new_request(line);
  else if (op == "lookup")
    out.call = lookup(line);
  else if (op == "allocated")
    out.call = allocate(line);
  else if (op == "step")
    out.call = step(line);
  else if (op == "finished")
    out.call = finish(line);
  else if (op == "completed")
    out.call = completed(line);
  else if (op == "reset_cache")
    out.call = reset_cache{};
  else if (op == "take_events")
    out.call = take_events{};
  else if (op == "probe")
    out.call = probe{};
  else
    throw unreadable{"unknown op '" + op + "' for level 'connector'"};
  hashes(line, out.hashes);
  if (const auto* expect = line.find("expect")) {
    auto in = fields{*expect, "expect"};
    out.want = want(in, op);
    in.finish();
  }
  result_.lines.push_back(std::move(out));
}

// -- calls --------------------------------------------------------------------

connector_call connector_reader::new_request(fields& line) {
  auto call = add_request{};
  call.request = id_of(line.text("req"));
  call.prompt_tokens = line.number("num_prompt_tokens", 0, max_tokens);
  call.known_tokens = line.number("num_tokens", 0, max_tokens);
  call.cap = cap(line.find("max_offload_tokens"));
  if (line.find("skip_reading_prefix_cache") != nullptr)
    call.no_read = line.truth("skip_reading_prefix_cache");
  hash_count_[call.request] = 0;
  known_[call.request] = call.known_tokens;
  return call;
}

connector_call connector_reader::lookup(fields& line) {
  auto call = lookup_row{};
  call.request = id_of(line.text("req"));
  call.local = line.number("num_computed", 0, max_tokens);
  if (line.find("num_tokens") != nullptr)
    known_[call.request] = line.number("num_tokens", 0, max_tokens);
  call.known_tokens = known_[call.request];
  return call;
}

connector_call connector_reader::allocate(fields& line) {
  auto call = allocated{};
  call.request = id_of(line.text("req"));
  call.external = line.number("external", 0, max_tokens);
  if (const auto* blocks = line.find("blocks"))
    call.blocks = block_table(*blocks, "blocks");
  if (const auto* hashed = line.find("hashed"))
    call.hashed
      = to_each(*hashed, "hashed", [](const json& marks, const auto& where) {
          return to_each(marks, where, [](const json& mark, const auto& at) {
            return static_cast<std::uint8_t>(to_number(mark, at, 0, 1));
          });
        });
  if (call.external > 0) {
    (void)line.at("blocks");
    (void)line.at("hashed");
  }
  if (call.blocks.size() != call.hashed.size()
      || !std::equal(
        call.blocks.begin(), call.blocks.end(), call.hashed.begin(),
        [](const auto& xs, const auto& ys) { return xs.size() == ys.size(); }))
    throw unreadable{"'hashed' has another shape than 'blocks'"};
  return call;
}

connector_call connector_reader::step(fields& line) {
  auto call = step_call{};
  call.rows
    = line.each("scheduled", [this](const json& value, const auto& where) {
        auto view = fields{value, where};
        auto result = row(view);
        view.finish();
        return result;
      });
  call.preempted
    = line.each("preempted", [this](const json& value, const auto& where) {
        return id_of(to_text(value, where));
      });
  call.finished
    = line.each("finished", [this](const json& value, const auto& where) {
        auto view = fields{value, where};
        auto result = finish(view);
        view.finish();
        return result;
      });
  return call;
}

connector_call connector_reader::completed(fields& line) {
  auto call = reports{};
  call.jobs = line.each("jobs", [](const json& value, const auto& where) {
    if (to_list(value, where).size() != 2)
      throw unreadable{'\'' + where + "' is not a pair"};
    return reports::entry{
      static_cast<job_id>(to_number(value[0], where, 0, max_id)),
      static_cast<std::uint32_t>(to_number(value[1], where, 1, max_ranks))};
  });
  return call;
}

finish_call connector_reader::finish(fields& view) {
  auto call = finish_call{};
  call.request = id_of(view.text("req"));
  call.reason = word<finish_reason>(view.text("status"), view.path("status"),
                                    {{"stopped", finish_reason::stop},
                                     {"length", finish_reason::length},
                                     {"repetition", finish_reason::repetition},
                                     {"aborted", finish_reason::abort},
                                     {"ignored", finish_reason::ignored},
                                     {"error", finish_reason::error}});
  call.computed = view.number("num_computed", 0, max_tokens);
  call.known = view.number("num_tokens", 0, max_tokens);
  known_[call.request] = call.known;
  return call;
}

step_row connector_reader::row(fields& view) {
  auto result = step_row{};
  result.request = id_of(view.text("req"));
  result.kind = word<row_kind>(view.text("kind"), view.path("kind"),
                               {{"new", row_kind::fresh},
                                {"running", row_kind::running},
                                {"resumed", row_kind::resumed}});
  const auto& blocks = view.at("new_blocks");
  if (!blocks.is_null())
    result.new_blocks = block_table(blocks, view.path("new_blocks"));
  result.scheduled = view.number("num_scheduled", 0, max_tokens);
  result.computed = view.number("num_computed", 0, max_tokens);
  result.known = view.number("num_tokens", 0, max_tokens);
  known_[result.request] = result.known;
  return result;
}

void connector_reader::hashes(fields& line, std::vector<extend_keys>& out) {
  const auto* value = line.find("hashes");
  if (value == nullptr)
    return;
  if (!value->is_object())
    throw unreadable{"'hashes' is not an object"};
  for (const auto& [name, list] : value->items()) {
    auto call = extend_keys{};
    call.request = id_of(name);
    call.hashes = to_each(list, "hashes." + name, to_hash);
    call.first = hash_count_[call.request];
    hash_count_[call.request] += call.hashes.size();
    out.push_back(std::move(call));
  }
}

// -- answers ------------------------------------------------------------------

json connector_reader::want(fields& expect, const std::string& op) {
  auto result = json::object();
  if (op == "lookup") {
    const auto& tokens = expect.at("tokens");
    result["tokens"] = tokens.is_null()
                       ? json{}
                       : json(expect.number("tokens", 0, max_tokens));
    result["async"] = expect.truth("async");
  } else if (op == "step") {
    result["load_jobs"] = want_jobs(expect, "load_jobs");
    result["store_jobs"] = want_jobs(expect, "store_jobs");
    result["flush"]
      = want_number_set(expect.at("flush"), expect.path("flush"), max_id);
  } else if (op == "finished") {
    result["delay_free"] = expect.truth("delay_free");
  } else if (op == "take_events") {
    result["events"] = want_events(expect.at("events"), expect.path("events"),
                                   result_.shape->groups.size());
  } else if (op == "probe") {
    result = want_probe(expect);
  }
  return result;
}

json connector_reader::want_jobs(fields& expect, std::string_view name) {
  return expect.each(name, [this](const json& value, const auto& where) {
    auto in = fields{value, where};
    const auto list = [&in](const char* field, std::int64_t max) {
      return want_numbers(in.at(field), in.path(field), max);
    };
    auto job = json{{"job", in.number("job", 0, max_id)},
                    {"req", in.text("req")},
                    {"gpu_blocks", list("gpu_blocks", max_block)},
                    {"group_sizes", list("group_sizes", max_block)},
                    {"block_indices", list("block_indices", max_block)},
                    {"host_chunks", list("host_chunks", max_block)},
                    {"keys", want_keys(in.at("keys"), in.path("keys"),
                                       result_.shape->groups.size())}};
    in.finish();
    return job;
  });
}

json connector_reader::want_probe(fields& expect) {
  // A probe may name only some of its fields.
  auto result = json::object();
  if (const auto* tracked = expect.find("tracked"))
    result["tracked"] = sorted(to_each(
      *tracked, expect.path("tracked"),
      [](const json& name, const auto& at) { return to_text(name, at); }));
  if (const auto* jobs = expect.find("jobs"))
    result["jobs"] = want_pairs(*jobs, expect.path("jobs"), max_id, max_ranks);
  if (expect.find("pending_work") != nullptr)
    result["pending_work"] = expect.truth("pending_work");
  if (const auto* next = expect.find("next_stored")) {
    auto in = fields{*next, expect.path("next_stored")};
    result["next_stored"] = json::object();
    for (const auto& [name, list] : next->items())
      result["next_stored"][name]
        = want_numbers(in.at(name), in.path(name), max_id);
  }
  if (const auto* watched = expect.find("watched_blocks"))
    result["watched_blocks"]
      = want_number_set(*watched, expect.path("watched_blocks"), max_block);
  if (const auto* host = expect.find("host")) {
    auto in = fields{*host, expect.path("host")};
    for (const auto* name : {"free", "evictable", "writing"})
      if (in.find(name) != nullptr)
        result["host"][name] = in.number(name, 0, max_id);
    in.finish();
  }
  return result;
}

// -- helpers ------------------------------------------------------------------

request_id connector_reader::id_of(const std::string& name) {
  const auto [pos, added] = ids_.try_emplace(name, result_.names.size());
  if (added) {
    result_.names.push_back(name);
    hash_count_.push_back(0);
    known_.push_back(0);
  }
  return pos->second;
}

std::vector<std::vector<block_id>>
connector_reader::block_table(const json& value, const std::string& where) {
  auto table = to_each(value, where, [](const json& list, const auto& at) {
    return to_each(list, at, [](const json& id, const auto& place) {
      return static_cast<block_id>(to_number(id, place, 0, max_block));
    });
  });
  if (table.size() != result_.shape->groups.size())
    throw unreadable{'\'' + where + "' has " + std::to_string(table.size())
                     + " lists, want one per group"};
  return table;
}

} // namespace kvtide::conformance
