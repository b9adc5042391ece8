// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/trace_reader.hpp"

#include "examples/replay/mix.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace kvtide::replay {

namespace {

constexpr token_count max_tokens = 10'000'000;
constexpr std::int64_t max_milliseconds = 1'000'000'000'000;
// More than twice what a row of `max_tokens` needs with the longest ids.
constexpr std::size_t max_line_bytes = 1u << 20;
constexpr std::string_view azure_header
  = "TIMESTAMP,ContextTokens,GeneratedTokens";

// Either a row, or what is wrong with its line.
using row_or_fault = result<trace_row>;

error fault(std::string text) {
  return {ec::invalid_argument, std::move(text)};
}

std::string quoted(std::string_view text) {
  constexpr std::size_t limit = 40;
  auto res = std::string(1, '"');
  res += text.substr(0, limit);
  res += text.size() > limit ? "...\"" : "\"";
  return res;
}

result<std::int64_t> checked(const std::string& name, std::int64_t value,
                             std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    return fault(name + " is " + std::to_string(value) + ", must be "
                 + std::to_string(low) + " to " + std::to_string(high));
  return value;
}

// -- Mooncake -----------------------------------------------------------------

result<std::int64_t> number_at(const nlohmann::json& object, const char* name,
                               std::int64_t low, std::int64_t high) {
  const auto found = object.find(name);
  if (found == object.end())
    return fault(std::string{name} + " is missing");
  if (!found->is_number_integer())
    return fault(std::string{name} + " must be a whole number");
  if (found->is_number_unsigned()
      && found->get<std::uint64_t>() > static_cast<std::uint64_t>(high))
    return fault(std::string{name} + " is larger than " + std::to_string(high));
  return checked(name, found->get<std::int64_t>(), low, high);
}

row_or_fault mooncake_row(std::string_view line) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (object.is_discarded() || !object.is_object())
    return fault("not a complete JSON object");
  const auto time = number_at(object, "timestamp", 0, max_milliseconds);
  if (!time)
    return time.failure();
  const auto input = number_at(object, "input_length", 1, max_tokens);
  if (!input)
    return input.failure();
  const auto output = number_at(object, "output_length", 0, max_tokens);
  if (!output)
    return output.failure();
  const auto ids = object.find("hash_ids");
  if (ids == object.end() || !ids->is_array())
    return fault("hash_ids is missing or not a list");
  const auto expected = (input.value() + tokens_per_id - 1) / tokens_per_id;
  if (ids->size() != static_cast<std::size_t>(expected))
    return fault("hash_ids has " + std::to_string(ids->size())
                 + " entries, input_length needs " + std::to_string(expected));
  auto row = trace_row{time.value() * 1'000'000,
                       input.value(),
                       std::max<token_count>(output.value(), 1),
                       {}};
  row.prefix_ids.reserve(ids->size());
  for (const auto& id : *ids) {
    if (!id.is_number_unsigned())
      return fault("hash_ids must hold whole numbers from 0 on");
    row.prefix_ids.push_back(id.get<std::uint64_t>());
  }
  return row;
}

// -- Azure --------------------------------------------------------------------

std::optional<std::int64_t> number_in(std::string_view text) {
  auto res = std::int64_t{0};
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, res);
  if (parsed.ec != std::errc{} || parsed.ptr != end)
    return std::nullopt;
  return res;
}

// Parses "2023-11-16 18:17:03.9799600" into nanoseconds.
std::optional<nanoseconds_t> time_in(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != ' '
      || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const auto field = [text](std::size_t at, std::size_t size, int low,
                            int high) -> std::optional<int> {
    const auto value = number_in(text.substr(at, size));
    if (!value || *value < low || *value > high)
      return std::nullopt;
    return static_cast<int>(*value);
  };
  const auto year = field(0, 4, 1970, 2200);
  const auto month = field(5, 2, 1, 12);
  const auto day = field(8, 2, 1, 31);
  const auto hour = field(11, 2, 0, 23);
  const auto minute = field(14, 2, 0, 59);
  const auto second = field(17, 2, 0, 59);
  if (!year || !month || !day || !hour || !minute || !second)
    return std::nullopt;
  const auto date = std::chrono::year{*year}
                  / std::chrono::month{static_cast<unsigned>(*month)}
                  / std::chrono::day{static_cast<unsigned>(*day)};
  if (!date.ok())
    return std::nullopt;
  auto fraction = std::int64_t{0};
  if (text.size() > 19) {
    auto digits = std::string{text.substr(20)};
    if (text[19] != '.' || digits.empty() || digits.size() > 9)
      return std::nullopt;
    digits.resize(9, '0');
    const auto value = number_in(digits);
    if (!value || *value < 0)
      return std::nullopt;
    fraction = *value;
  }
  const auto days = std::chrono::sys_days{date}.time_since_epoch().count();
  const auto seconds = ((days * 24 + *hour) * 60 + *minute) * 60 + *second;
  return std::int64_t{seconds} * 1'000'000'000 + fraction;
}

row_or_fault azure_row(std::string_view line) {
  const auto first = line.find(',');
  const auto second = first == std::string_view::npos
                      ? std::string_view::npos
                      : line.find(',', first + 1);
  if (second == std::string_view::npos
      || line.find(',', second + 1) != std::string_view::npos)
    return fault("a row has 3 fields: " + std::string{azure_header});
  const auto time = time_in(line.substr(0, first));
  if (!time)
    return fault("TIMESTAMP " + quoted(line.substr(0, first))
                 + " is not a date and time");
  const auto context = line.substr(first + 1, second - first - 1);
  const auto prompt = number_in(context);
  if (!prompt)
    return fault("ContextTokens " + quoted(context) + " is not a whole number");
  const auto generated = line.substr(second + 1);
  const auto output = number_in(generated);
  if (!output)
    return fault("GeneratedTokens " + quoted(generated)
                 + " is not a whole number");
  if (auto ok = checked("ContextTokens", *prompt, 1, max_tokens); !ok)
    return ok.failure();
  if (auto ok = checked("GeneratedTokens", *output, 0, max_tokens); !ok)
    return ok.failure();
  return trace_row{*time, *prompt, std::max<token_count>(*output, 1), {}};
}

// -- both ---------------------------------------------------------------------

// A device may never end, a directory cannot be read. What cannot be seen is
// left to the attempt to open it, which has the reason.
std::string find_misuse(const std::string& path) {
  auto ignored = std::error_code{};
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status))
    return "is a directory, not a file";
  if (std::filesystem::exists(status)
      && !std::filesystem::is_regular_file(status)
      && !std::filesystem::is_fifo(status))
    return "is neither a file nor a pipe";
  return {};
}

// Reads lines up to `max_line_bytes`: what comes through a pipe may never have
// an end of line.
class line_reader {
public:
  explicit line_reader(std::istream& in)
    : in_(in), buffer_(max_line_bytes + 1) {
    // nop
  }

  /// @returns false at the end, and if the line is too long.
  bool next(std::string& line) {
    in_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    const auto got = static_cast<std::size_t>(in_.gcount());
    too_long_ = in_.fail() && !in_.eof() && !in_.bad();
    if (in_.fail())
      return false;
    // The end of line is counted, but not stored.
    line.assign(buffer_.data(), in_.eof() ? got : got - 1);
    return true;
  }

  [[nodiscard]] bool too_long() const noexcept {
    return too_long_;
  }

private:
  std::istream& in_;
  std::vector<char> buffer_;
  bool too_long_ = false;
};

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

} // namespace

result<std::vector<trace_row>> read_trace(const std::string& path) {
  if (const auto misuse = find_misuse(path); !misuse.empty())
    return fault(path + ": " + misuse);
  auto file = std::ifstream{path};
  if (!file)
    return fault(path + ": cannot be opened: " + std::strerror(errno));
  auto lines = line_reader{file};
  auto rows = std::vector<trace_row>{};
  auto line = std::string{};
  auto number = std::size_t{0};
  row_or_fault (*parse)(std::string_view) = nullptr;
  const auto at_line = [&](const std::string& text) {
    return fault(path + ":" + std::to_string(number) + ": " + text);
  };
  while (lines.next(line)) {
    ++number;
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    if (blank(line))
      continue;
    if (parse == nullptr && line == azure_header) {
      parse = azure_row;
      continue;
    }
    if (parse == nullptr && line.front() != '{')
      return at_line("neither a JSON object nor the header "
                     + quoted(azure_header));
    if (parse == nullptr)
      parse = mooncake_row;
    auto row = parse(line);
    if (!row)
      return at_line(row.failure().text);
    if (!rows.empty() && row.value().arrival < rows.back().arrival)
      return at_line("earlier than the row before it");
    rows.push_back(std::move(row).value());
  }
  if (lines.too_long()) {
    ++number;
    return at_line("longer than " + std::to_string(max_line_bytes) + " bytes");
  }
  if (file.bad())
    return fault(path + ": reading failed");
  if (rows.empty())
    return fault(path + ": holds no request");
  const auto start = rows.front().arrival;
  for (auto& row : rows)
    row.arrival -= start;
  return rows;
}

ideal_hits ideal_of(const std::vector<trace_row>& rows) {
  auto res = ideal_hits{};
  auto seen = std::unordered_set<std::uint64_t>{};
  for (const auto& row : rows) {
    auto chain = std::uint64_t{0};
    auto known = token_count{0};
    auto leading = true;
    for (const auto id : row.prefix_ids) {
      chain = mix(chain, id);
      leading = !seen.insert(chain).second && leading;
      known += leading ? tokens_per_id : 0;
    }
    res.hit_tokens += std::min(known, row.prompt_tokens - 1);
    res.prompt_tokens += row.prompt_tokens;
  }
  return res;
}

} // namespace kvtide::replay
