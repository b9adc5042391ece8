// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/conformance/json_fields.hpp"
#include "tests/conformance/stage.hpp"

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace kvtide::conformance {

/// What is written down while one file is replayed: mismatches, and where the
/// replay is.
class recorder {
public:
  /// A file with this many mismatches is not replayed further.
  static constexpr std::size_t limit = 20;

  /// @param path as messages name the file
  /// @param trace gets a line per message; may be null
  recorder(std::string path, std::ostream* trace);

  /// The replay has come to this line of the file.
  void enter(std::size_t line, std::string what);

  /// Adds a mismatch of the current line, until the limit is reached.
  void complain(const std::string& text);

  /// Adds a mismatch for each part of `want` that `got` does not equal.
  void compare(const json& want, const json& got);

  /// Adds a mismatch that ends the replay.
  void give_up(const std::string& text);

  [[nodiscard]] bool enough() const noexcept {
    return hopeless_ || mismatches_.size() >= limit;
  }

  /// One line of text each: "path:line: what: got ..., want ...".
  [[nodiscard]] const std::vector<std::string>& mismatches() const noexcept {
    return mismatches_;
  }

  /// Writes messages to the trace.
  [[nodiscard]] stage::config
  stage_config(std::optional<handler_name> stub) const;

private:
  [[nodiscard]] std::string place() const;

  void compare(const std::string& what, const json& want, const json& got);

  std::string path_;
  std::ostream* trace_;
  std::size_t line_ = 1;
  std::string what_ = "config";
  bool hopeless_ = false;
  std::vector<std::string> mismatches_;
};

} // namespace kvtide::conformance
