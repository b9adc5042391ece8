// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstddef>
#include <string>

namespace kvtide::test {

/// Hears what the library logs. One per program.
class log_ear {
public:
  /// Forgets what was said before.
  log_ear();

  /// Lines since then that have `part` in them.
  [[nodiscard]] std::size_t count(const std::string& part = {}) const;

  /// Waits until a line has `part` in it.
  /// @returns it, or an empty string if none came
  [[nodiscard]] std::string await(const std::string& part) const;

  /// All that was said since then.
  [[nodiscard]] std::string text() const;
};

} // namespace kvtide::test
