// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/order_log.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::test {

/// Hears of every breach of the order and lets the test fail, unless the test
/// sends wrong things on purpose and has said so.
class breach_ear {
public:
  /// For `on_breach` of an actor's config; may outlive this object.
  [[nodiscard]] std::function<void(const core::order_breach&)>
  listener() const {
    return [heard = heard_](const core::order_breach& x) {
      const auto text = core::to_string(x.rule) + " " + x.text;
      const auto wanted
        = x.rule == core::order_rule::call ? heard->calls : heard->all;
      if (!wanted)
        ADD_FAILURE() << "breach of the order: " << text;
      heard->texts.push_back(text);
    };
  }

  /// From now on the test looks for itself.
  void expect() {
    heard_->calls = heard_->all = true;
  }

  /// The same for wrong calls only.
  void expect_wrong_calls() {
    heard_->calls = true;
  }

  /// What was heard since the last call, e.g. "S12 a plan came out of order:
  /// step 7; ...".
  [[nodiscard]] std::vector<std::string> take() {
    return std::exchange(heard_->texts, {});
  }

private:
  struct content {
    bool calls = false;
    bool all = false;
    std::vector<std::string> texts;
  };

  std::shared_ptr<content> heard_ = std::make_shared<content>();
};

} // namespace kvtide::test
