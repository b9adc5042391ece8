// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/support/message_name.hpp"

#include <caf/detail/type_list.hpp>

#include <type_traits>
#include <utility>

namespace kvtide::test {

/// Several functions as one overload set.
template <class... Functions>
struct overloads : Functions... {
  using Functions::operator()...;
};

namespace detail {

template <class Interface, class Signatures>
struct listener_of;

template <class Interface, class... Signatures>
struct listener_of<Interface, caf::detail::type_list<Signatures...>> {
  template <class Function>
  static typename Interface::behavior_type make(const Function& fun) {
    return {handler<typename message_of<Signatures>::type>(fun)...};
  }

private:
  template <class Message, class Function>
  static auto handler(const Function& fun) {
    return [fun](const Message& x) {
      if constexpr (std::is_invocable_v<const Function&, const Message&>)
        fun(x);
    };
  }
};

} // namespace detail

/// The behavior of an actor that answers nothing: each message goes to the
/// function that takes it, and to nobody if there is none. A new message in the
/// interface concerns only the tests that want to hear of it.
template <class Interface, class... Functions>
[[nodiscard]] typename Interface::behavior_type listen(Functions... functions) {
  using listener
    = detail::listener_of<Interface, typename Interface::signatures>;
  if constexpr (sizeof...(Functions) == 0)
    return listener::make([] {});
  else
    return listener::make(overloads<Functions...>{std::move(functions)...});
}

/// To be spawned where somebody must be there and nobody listens.
template <class Interface>
[[nodiscard]] typename Interface::behavior_type mute() {
  return listen<Interface>();
}

} // namespace kvtide::test
