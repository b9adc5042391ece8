// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/vector_reader.hpp"

#include "tests/conformance/connector_reader.hpp"
#include "tests/conformance/pool_reader.hpp"
#include "tests/conformance/worker_reader.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

namespace kvtide::conformance {

namespace {

using level_reader = std::variant<connector_reader, pool_reader, worker_reader>;

level_reader read_config(fields& line, std::string& name) {
  name = line.text("name");
  const auto& level = line.text("level");
  if (level == "connector")
    return connector_reader{line};
  if (level == "host_pool")
    return pool_reader{line};
  if (level == "worker")
    return worker_reader{line};
  throw unreadable{"'level' is \"" + level
                   + "\", want one of connector, host_pool, worker"};
}

void read_line(const std::string& text, std::size_t number,
               std::optional<level_reader>& reader, std::string& name) {
  const auto value = parse_object(text);
  auto line = fields{value, ""};
  const auto& op = line.text("op");
  if (op == "config") {
    if (reader)
      throw unreadable{"a second config"};
    reader = read_config(line, name);
  } else {
    if (!reader)
      throw unreadable{"the first line must be the config"};
    std::visit([&](auto& level) { level.read(line, op, number); }, *reader);
  }
  line.finish();
}

error invalid(const std::string& path, std::size_t number,
              const std::string& what) {
  return {ec::invalid_argument,
          path + ':' + std::to_string(number) + ": " + what};
}

} // namespace

result<scenario> read_vector(std::istream& in, const std::string& path) {
  auto out = scenario{};
  out.path = path;
  auto reader = std::optional<level_reader>{};
  auto text = std::string{};
  while (std::getline(in, text)) {
    ++out.line_count;
    try {
      read_line(text, out.line_count, reader, out.name);
    } catch (const unreadable& problem) {
      return invalid(path, out.line_count, problem.what);
    }
  }
  if (in.bad())
    return invalid(path, out.line_count + 1, "reading failed");
  if (!reader)
    return invalid(path, 1, "the file is empty");
  std::visit([&out](auto& level) { out.content = level.take(); }, *reader);
  return out;
}

result<scenario> read_vector_file(const std::string& path) {
  auto in = std::ifstream{path, std::ios::binary};
  if (!in)
    return error{ec::invalid_argument,
                 path + ": cannot be opened: " + std::strerror(errno)};
  return read_vector(in, path);
}

} // namespace kvtide::conformance
