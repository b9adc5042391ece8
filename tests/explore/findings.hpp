// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <optional>
#include <string>
#include <utility>

namespace kvtide::explore {

/// What a run broke.
struct finding {
  /// A rule of docs/rules.md: "S1" to "S13", or "R9". "call" if the order
  /// checker of the product blames the engine, "life" if something died or
  /// hangs, "rest" if something is left over, "bytes" if compute reads wrong
  /// ones.
  std::string rule;
  std::string text;
};

/// Keeps the first finding: what comes after it may be its consequence.
class findings {
public:
  void report(finding what) {
    if (!first_)
      first_ = std::move(what);
  }

  void report(std::string rule, std::string text) {
    report({std::move(rule), std::move(text)});
  }

  [[nodiscard]] const std::optional<finding>& first() const noexcept {
    return first_;
  }

private:
  std::optional<finding> first_;
};

} // namespace kvtide::explore
