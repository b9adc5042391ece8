// SPDX-License-Identifier: Apache-2.0

/// @file
/// Lets CAF read and write messages that bring their own bytes.

#pragma once

#include <caf/error.hpp>
#include <caf/meta/load_callback.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/sec.hpp>

#include <string>
#include <type_traits>

namespace kvtide {

/// For `inspect` of a message that has `to_bytes` and `from_bytes`: its bytes
/// travel as one string. In texts its step stands for it.
template <class Inspector, class Message>
typename Inspector::result_type inspect_bytes(Inspector& f, const char* name,
                                              Message& x) {
  if constexpr (std::is_void_v<typename Inspector::result_type>) {
    return f(caf::meta::type_name(name), x.step);
  } else {
    std::string bytes;
    if constexpr (Inspector::reads_state)
      bytes = to_bytes(x);
    const auto load = [&x, &bytes]() -> caf::error {
      if (!from_bytes(bytes, x))
        return caf::sec::invalid_argument;
      return caf::none;
    };
    return f(caf::meta::type_name(name), bytes, caf::meta::load_callback(load));
  }
}

} // namespace kvtide
