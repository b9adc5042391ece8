// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <caf/detail/type_list.hpp>
#include <caf/replies_to.hpp>

#include <string>
#include <typeinfo>
#include <vector>

namespace kvtide::test {

/// The name of a message type without its namespaces.
[[nodiscard]] std::string message_name(const std::type_info& type);

namespace detail {

template <class Signature>
struct message_of;

template <class T, class Out>
struct message_of<caf::typed_mpi<caf::detail::type_list<T>, Out>> {
  using type = T;
};

template <class Signatures>
struct message_names_of;

template <class... Signatures>
struct message_names_of<caf::detail::type_list<Signatures...>> {
  static std::vector<std::string> get() {
    return {message_name(typeid(typename message_of<Signatures>::type))...};
  }
};

} // namespace detail

/// The names of all messages that a typed interface has a handler for.
template <class Interface>
[[nodiscard]] std::vector<std::string> message_names() {
  return detail::message_names_of<typename Interface::signatures>::get();
}

} // namespace kvtide::test
