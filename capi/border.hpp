// SPDX-License-Identifier: Apache-2.0

/// @file
/// The line that no exception crosses.

#pragma once

#include "kvtide/error.hpp"
#include "kvtide/kvtide.h"
#include "kvtide/result.hpp"

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace kvtide::capi {

/// Ends a call of C without effect: thrown where an argument is found to be
/// wrong, caught in `guarded`.
class refusal : public std::exception {
public:
  /// @pre `reason.code != ec::none`
  explicit refusal(error reason) : reason_(std::move(reason)) {
    // nop
  }

  [[nodiscard]] const error& reason() const noexcept {
    return reason_;
  }

  [[nodiscard]] const char* what() const noexcept override {
    return reason_.text.c_str();
  }

private:
  error reason_;
};

/// @param text what is wrong and what to do
[[noreturn]] void refuse(std::string text);

/// Says that nothing came in time.
[[noreturn]] void time_out(std::int64_t milliseconds);

/// Refuses with whatever went wrong, if something did.
void check(const error& reason);

template <class T>
T check(result<T> made) {
  if (!made)
    throw refusal{made.failure()};
  return std::move(made).value();
}

/// To be called while an exception is handled: keeps its sentence for
/// `kvtide_last_error`.
/// @returns its status
kvtide_status keep_exception() noexcept;

/// Keeps a sentence for `kvtide_last_error`, cut if it is too long.
void keep_sentence(const char* text) noexcept;

/// Runs `body`, and lets nothing out but a status.
template <class F>
kvtide_status guarded(F&& body) noexcept {
  try {
    std::forward<F>(body)();
    return KVTIDE_OK;
  } catch (...) {
    return keep_exception();
  }
}

} // namespace kvtide::capi
