// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/lane_messages.hpp"

#include "examples/replay/frame_stream.hpp"

#include <limits>
#include <utility>

namespace kvtide::replay {

namespace {

using json = nlohmann::json;

[[noreturn]] void refuse(const json& message, const std::string& field) {
  throw stream_error{"the other side sent a message \"" + word_of(message)
                     + "\" whose \"" + field + "\" is missing or wrong"};
}

// A field, or nothing if there is none.
const json* find(const json& message, const char* field) {
  if (!message.is_object())
    return nullptr;
  const auto found = message.find(field);
  return found != message.end() ? &*found : nullptr;
}

std::uint64_t number_in(const json& message, const char* field,
                        std::uint64_t most
                        = std::numeric_limits<std::uint64_t>::max()) {
  const auto* value = find(message, field);
  if (value == nullptr || !value->is_number_unsigned()
      || value->get<std::uint64_t>() > most)
    refuse(message, field);
  return value->get<std::uint64_t>();
}

std::string text_in(const json& message, const char* field) {
  const auto* value = find(message, field);
  if (value == nullptr || !value->is_string())
    refuse(message, field);
  return value->get<std::string>();
}

constexpr auto most_time
  = static_cast<std::uint64_t>(std::numeric_limits<nanoseconds_t>::max());

// -- spans --------------------------------------------------------------------

constexpr std::size_t span_numbers = 6;
constexpr std::size_t check_numbers = span_numbers + 3;

void append(json::array_t& out, const kv_span& span) {
  const auto& part = span.part;
  out.emplace_back(part.group);
  out.emplace_back(part.index);
  out.emplace_back(part.block);
  out.emplace_back(static_cast<std::uint64_t>(part.first));
  out.emplace_back(static_cast<std::uint64_t>(part.last));
  out.emplace_back(span.seed);
}

// Reads a list of rows of `width` numbers.
class row_reader {
public:
  row_reader(const json& message, const char* field, std::size_t width)
    : message_(message), field_(field), list_(find(message, field)) {
    if (list_ == nullptr || !list_->is_array() || list_->size() % width != 0)
      refuse(message, field);
  }

  [[nodiscard]] bool at_end() const {
    return at_ == list_->size();
  }

  std::uint64_t next(std::uint64_t most
                     = std::numeric_limits<std::uint64_t>::max()) {
    const auto& value = (*list_)[at_++];
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
      refuse(message_, field_);
    return value.get<std::uint64_t>();
  }

  kv_span next_span(const geometry& shape) {
    auto res = kv_span{};
    auto& part = res.part;
    part.group = static_cast<group_id>(next(shape.groups() - 1));
    part.index = static_cast<std::size_t>(next());
    part.block = static_cast<block_id>(next(shape.device_blocks));
    part.first = static_cast<token_count>(next(shape.tokens_per_block));
    part.last = static_cast<token_count>(next(shape.tokens_per_block));
    res.seed = next();
    if (part.block == no_block || part.first > part.last)
      refuse(message_, field_);
    return res;
  }

private:
  const json& message_;
  const char* field_;
  const json* list_;
  std::size_t at_ = 0;
};

// -- what comparing said ------------------------------------------------------

template <std::size_t N>
void read_numbers(const json& message, const char* field,
                  std::array<std::uint64_t, N>& out) {
  auto reader = row_reader{message, field, N};
  for (auto& value : out) {
    if (reader.at_end())
      refuse(message, field);
    value = reader.next();
  }
}

json to_list(const mismatch& what) {
  const auto& part = what.part;
  const auto& at = what.where;
  return json::array({static_cast<std::uint64_t>(what.reason), what.request,
                      part.group, part.index, part.block, at.layer, at.plane,
                      at.rank, static_cast<std::uint64_t>(what.token),
                      what.byte, std::to_integer<unsigned>(what.got),
                      std::to_integer<unsigned>(what.want), what.number});
}

mismatch mismatch_of(const json& message) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  auto reader = row_reader{message, "first", 13};
  if (reader.at_end())
    refuse(message, "first");
  auto res = mismatch{};
  res.reason = static_cast<check_reason>(reader.next(check_reasons - 1));
  res.request = reader.next();
  res.part.group = res.where.group = static_cast<group_id>(reader.next(most));
  res.part.index = static_cast<std::size_t>(reader.next());
  res.part.block = static_cast<block_id>(reader.next(most));
  res.where.layer = static_cast<std::uint32_t>(reader.next(most));
  res.where.plane = static_cast<std::uint32_t>(reader.next(most));
  res.where.rank = static_cast<rank_id>(reader.next(most));
  res.token = static_cast<token_count>(reader.next(most_time));
  res.byte = static_cast<std::size_t>(reader.next());
  res.got = static_cast<std::byte>(reader.next(255));
  res.want = static_cast<std::byte>(reader.next(255));
  res.number = reader.next();
  return res;
}

} // namespace

std::string word_of(const nlohmann::json& message) {
  const auto* word = find(message, "say");
  return word != nullptr && word->is_string() ? word->get<std::string>()
                                              : std::string{};
}

// -- hello --------------------------------------------------------------------

nlohmann::json hello_of(const replay_options& opts, rank_id rank) {
  const auto& shape = opts.shape;
  return {{"say", "hello"},
          {"protocol", lane_protocol},
          {"rank", rank},
          {"ranks in all", opts.ranks},
          {"--layers", shape.layers},
          {"--kv-heads", shape.kv_heads},
          {"--head-size", shape.head_size},
          {"--dtype-bytes", shape.dtype_bytes},
          {"--tokens-per-block", shape.tokens_per_block},
          {"--sliding-window", shape.sliding_window},
          {"--device-blocks", shape.device_blocks},
          {"--fingerprint", opts.fingerprint},
          {"--clock", to_word(opts.clock)}};
}

std::string fault_of(const nlohmann::json& ours, const nlohmann::json& theirs) {
  for (const auto& [name, value] : ours.items()) {
    const auto* other = find(theirs, name.c_str());
    if (other == nullptr || *other != value)
      return "\"" + name + "\" is " + value.dump()
           + " in the rank's process and "
           + (other != nullptr
                ? other->dump(-1, ' ', true, json::error_handler_t::replace)
                : std::string{"nothing"})
           + " in the engine's; start both with the same";
  }
  return {};
}

nlohmann::json to_message(const lane_greeting& what) {
  return {{"say", "hello"}, {"life", what.life}};
}

lane_greeting greeting_of(const nlohmann::json& message) {
  return {number_in(message, "life")};
}

// -- memory -------------------------------------------------------------------

nlohmann::json to_message(const kv_registered& what) {
  return {{"say", "registered"},
          {"slots", what.slots},
          {"slot_bytes", what.slot_bytes},
          {"notes", what.notes}};
}

kv_registered registered_of(const nlohmann::json& message) {
  auto res = kv_registered{};
  res.slots = number_in(message, "slots");
  res.slot_bytes = number_in(message, "slot_bytes");
  const auto* notes = find(message, "notes");
  if (notes == nullptr || !notes->is_array())
    refuse(message, "notes");
  for (const auto& note : *notes) {
    if (!note.is_string())
      refuse(message, "notes");
    res.notes.push_back(note.get<std::string>());
  }
  return res;
}

// -- steps --------------------------------------------------------------------

nlohmann::json begin_message(step_id step, const std::string& plan) {
  return {{"say", "begin"},
          {"step", step},
          {"plan", json::binary({plan.begin(), plan.end()})}};
}

step_id step_of(const nlohmann::json& message) {
  return number_in(message, "step");
}

std::string plan_of(const nlohmann::json& message) {
  const auto* plan = find(message, "plan");
  if (plan == nullptr || !plan->is_binary())
    refuse(message, "plan");
  const auto& bytes = plan->get_binary();
  return {bytes.begin(), bytes.end()};
}

nlohmann::json to_message(step_id step, const readiness& what) {
  return {{"say", "ready"},
          {"step", step},
          {"waits", what.waits ? 1u : 0u},
          {"not_before", static_cast<std::uint64_t>(what.not_before)}};
}

readiness readiness_of(const nlohmann::json& message) {
  auto res = readiness{};
  res.waits = number_in(message, "waits", 1) != 0;
  res.not_before
    = static_cast<nanoseconds_t>(number_in(message, "not_before", most_time));
  return res;
}

nlohmann::json to_message(const kv_work& what) {
  auto writes = json::array_t{};
  writes.reserve(what.writes.size() * span_numbers);
  for (const auto& span : what.writes)
    append(writes, span);
  auto checks = json::array_t{};
  checks.reserve(what.checks.size() * check_numbers);
  for (const auto& check : what.checks) {
    append(checks, check.span);
    checks.emplace_back(check.request);
    checks.emplace_back(static_cast<std::uint64_t>(check.reason));
    checks.emplace_back(check.number);
  }
  return {{"say", "compute"},
          {"writes", std::move(writes)},
          {"checks", std::move(checks)}};
}

kv_work work_of(const nlohmann::json& message, const geometry& shape) {
  auto res = kv_work{};
  for (auto rows = row_reader{message, "writes", span_numbers}; !rows.at_end();)
    res.writes.push_back(rows.next_span(shape));
  auto rows = row_reader{message, "checks", check_numbers};
  while (!rows.at_end()) {
    auto what = kv_check{};
    what.span = rows.next_span(shape);
    what.request = rows.next();
    what.reason = static_cast<check_reason>(rows.next(check_reasons - 1));
    what.number = rows.next();
    res.checks.push_back(what);
  }
  return res;
}

nlohmann::json to_message(const check_tally& what) {
  auto res = json{{"say", "computed"},
                  {"compared", what.compared_bytes},
                  {"mismatches", what.mismatches}};
  if (what.first)
    res["first"] = to_list(*what.first);
  return res;
}

check_tally tally_of(const nlohmann::json& message) {
  auto res = check_tally{};
  read_numbers(message, "compared", res.compared_bytes);
  read_numbers(message, "mismatches", res.mismatches);
  if (find(message, "first") != nullptr)
    res.first = mismatch_of(message);
  return res;
}

nlohmann::json end_message(step_id step, nanoseconds_t end) {
  return {
    {"say", "end"}, {"step", step}, {"end", static_cast<std::uint64_t>(end)}};
}

nanoseconds_t end_of(const nlohmann::json& message) {
  return static_cast<nanoseconds_t>(number_in(message, "end", most_time));
}

// -- the rest -----------------------------------------------------------------

nlohmann::json to_message(const copy_work& what) {
  return {{"say", "stats"},
          {"bytes", what.bytes},
          {"time", static_cast<std::uint64_t>(what.time.count())}};
}

copy_work copies_of(const nlohmann::json& message) {
  return {number_in(message, "bytes"),
          std::chrono::nanoseconds{
            static_cast<std::int64_t>(number_in(message, "time", most_time))}};
}

nlohmann::json word_message(const char* word) {
  return {{"say", word}};
}

nlohmann::json error_message(const std::string& text) {
  return {{"say", "error"}, {"text", text}};
}

std::string error_of(const nlohmann::json& message) {
  return text_in(message, "text");
}

} // namespace kvtide::replay
