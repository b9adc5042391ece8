// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/answers.hpp"

#include <fstream>
#include <string>

namespace kvtide::replay {

/// One line, without a newline: all that the plan of a step says. Two plans are
/// the same if their texts are.
[[nodiscard]] std::string to_text(const step_plan& plan);

/// Writes each step's plan to a file, so that two runs can be compared.
class plan_log {
public:
  /// @param path Empty: nothing is written. Throws `bad_configuration` if the
  ///             file cannot be.
  explicit plan_log(const std::string& path);

  void note(const step_plan& plan);

  /// Throws `replay_failure` if something could not be written.
  void close();

private:
  std::string path_;
  std::ofstream file_;
};

} // namespace kvtide::replay
