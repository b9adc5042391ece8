// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/error.hpp"

#include <cassert>
#include <utility>
#include <variant>

namespace kvtide {

/// Either a value or an error. No exception crosses this library's border.
template <class T>
class [[nodiscard]] result {
public:
  result(T value) : content_(std::move(value)) { // NOLINT: implicit on purpose
    // nop
  }

  /// @pre `err.code != ec::none`
  result(error err) : content_(std::move(err)) { // NOLINT: implicit on purpose
    assert(std::get<error>(content_).code != ec::none);
  }

  [[nodiscard]] bool ok() const noexcept {
    return std::holds_alternative<T>(content_);
  }

  explicit operator bool() const noexcept {
    return ok();
  }

  /// @pre `ok()`
  [[nodiscard]] T& value() & noexcept {
    assert(ok());
    return *std::get_if<T>(&content_);
  }

  /// @pre `ok()`
  [[nodiscard]] const T& value() const& noexcept {
    assert(ok());
    return *std::get_if<T>(&content_);
  }

  /// @pre `ok()`
  [[nodiscard]] T&& value() && noexcept {
    assert(ok());
    return std::move(*std::get_if<T>(&content_));
  }

  /// @pre `!ok()`
  [[nodiscard]] const error& failure() const noexcept {
    assert(!ok());
    return *std::get_if<error>(&content_);
  }

private:
  std::variant<T, error> content_;
};

} // namespace kvtide
