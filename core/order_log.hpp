// SPDX-License-Identifier: Apache-2.0

/// @file
/// Where every violation of the order ends up (S12).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace kvtide::core {

/// The rule that a message broke; the numbers are those of docs/rules.md and of
/// `stats::order_errors_by_rule`.
enum class order_rule : std::uint8_t {
  /// A wrong call of the engine or of a rank side (R10).
  call,
  s1,
  s2,
  s3,
  s4,
  s5,
  s6,
  s7,
  s8,
  s9,
  /// Never counted: the types of what a worker may say leave it nothing to
  /// decide, so there is nothing to check while running.
  s10,
  s11,
  s12,
  s13,
};

inline constexpr std::size_t order_rules = 14;

/// Indexed by `order_rule`.
using order_counts = std::array<std::uint64_t, order_rules>;

/// "call", "S1" and so on.
[[nodiscard]] std::string to_string(order_rule rule);

struct order_breach {
  order_rule rule = order_rule::call;
  /// Names the message that came and what it contradicts.
  std::string text;
};

/// Counts what came in an order that the protocol excludes. Tells everybody
/// who asked to hear of every breach, and whoever writes the log of the first
/// one of each kind. Costs nothing while all is in order.
class order_log {
public:
  using listener = std::function<void(const order_breach&)>;

  /// @param on_first hears of the first breach of each kind
  /// @param on_breach hears of each
  explicit order_log(listener on_first = {}, listener on_breach = {})
    : on_first_(std::move(on_first)), on_breach_(std::move(on_breach)) {
    // nop
  }

  /// @param kind what went wrong, the same words each time; outlives the log
  /// @param detail which messages they were
  void breach(order_rule rule, std::string_view kind,
              const std::string& detail = {});

  /// Counts a breach that others have told of.
  void count(order_rule rule) {
    counts_[static_cast<std::size_t>(rule)] += 1;
    total_ += 1;
  }

  [[nodiscard]] std::uint64_t total() const noexcept {
    return total_;
  }

  [[nodiscard]] const order_counts& counts() const noexcept {
    return counts_;
  }

private:
  listener on_first_;
  listener on_breach_;
  order_counts counts_{};
  std::uint64_t total_ = 0;
  std::set<std::string_view> told_;
};

} // namespace kvtide::core
