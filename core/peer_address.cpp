// SPDX-License-Identifier: Apache-2.0

#include "core/peer_address.hpp"

#include <charconv>
#include <system_error>

namespace kvtide::core {

result<peer_address> read_peer_address(std::string_view text,
                                       const std::string& option) {
  const auto wrong = [&](const char* what) -> error {
    return {ec::invalid_options,
            option + " is \"" + std::string{text} + "\": " + what
              + "; write host:port, and an IPv6 address in brackets"};
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return wrong("it has no port");
  auto host = text.substr(0, colon);
  const auto digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']') && host.size() > 2)
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of("[]:") != std::string_view::npos)
    return wrong("colons or brackets are in the wrong place");
  if (host.empty())
    return wrong("it has no host");
  if (host.size() > 255
      || host.find_first_of(std::string_view{" \t\n\r\0/", 6})
           != std::string_view::npos)
    return wrong("that is no host");
  auto out = peer_address{std::string{host}, 0};
  const auto* last = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), last, out.port);
  if (digits.empty() || read.ec != std::errc{} || read.ptr != last)
    return wrong("the port is no number from 0 to 65535");
  return out;
}

std::string to_string(const peer_address& x) {
  const auto port = ':' + std::to_string(x.port);
  if (x.host.find(':') == std::string::npos)
    return x.host + port;
  return '[' + x.host + ']' + port;
}

} // namespace kvtide::core
