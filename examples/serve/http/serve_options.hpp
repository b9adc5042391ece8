// SPDX-License-Identifier: Apache-2.0

/// @file
/// The command line of kvtide-serve.

#pragma once

#include "examples/serve/engine/engine_options.hpp"
#include "examples/serve/http/server_options.hpp"

#include <string>
#include <variant>

namespace serve {

struct serve_options {
  engine_options engine;
  server_options http;
};

/// The program has nothing to serve: help was asked for, or the command line
/// is wrong.
struct early_exit {
  /// Exit status: 0 or 2.
  int code = 0;
  /// For standard output with status 0, else for standard error.
  std::string text;
};

[[nodiscard]] std::variant<serve_options, early_exit>
parse_options(int argc, const char* const* argv);

} // namespace serve
