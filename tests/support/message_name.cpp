// SPDX-License-Identifier: Apache-2.0

#include "tests/support/message_name.hpp"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace kvtide::test {

std::string message_name(const std::type_info& type) {
  auto status = 0;
  const auto text = std::unique_ptr<char, void (*)(void*)>{
    abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free};
  auto name = std::string{status == 0 ? text.get() : type.name()};
  const auto colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

} // namespace kvtide::test
