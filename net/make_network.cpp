// SPDX-License-Identifier: Apache-2.0

#include "kvtide/network.hpp"

#include "actors/log.hpp"
#include "net/caf_network.hpp"
#include "net/certificates.hpp"

#include <chrono>
#include <utility>

namespace kvtide {

result<std::shared_ptr<network>> make_network(const network_options& opts) {
  using namespace std::chrono_literals;
  if (opts.detection < 100ms || opts.detection > 1h)
    return error{ec::invalid_options,
                 "detection is " + std::to_string(opts.detection.count())
                   + " ms; it must be from 100 ms to an hour."};
  if (auto fault = net::fault_of_certificates(opts); fault.code != ec::none)
    return fault;
  auto where = std::vector<net::endpoint>{};
  if (!opts.listen.empty()) {
    const auto address = core::read_peer_address(opts.listen, "listen");
    if (!address)
      return address.failure();
    auto found = net::resolve(address.value(), "listen");
    if (!found)
      return found.failure();
    where = std::move(found).value();
    if (auto fault = net::fault_of_reach(opts, where, "listen");
        fault.code != ec::none)
      return fault;
  }
  for (const auto& warning : net::certificate_warnings(opts))
    log().warn("network: {}", warning);
  return std::shared_ptr<network>{
    std::make_shared<net::caf_network>(opts, std::move(where))};
}

std::string address_of(const network& net) {
  return net.address();
}

} // namespace kvtide
