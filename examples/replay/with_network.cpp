// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/open_network.hpp"

namespace kvtide::replay {

result<std::shared_ptr<network>> open_network(const network_options& opts) {
  return make_network(opts);
}

std::string place_of(const network& net) {
  return address_of(net);
}

} // namespace kvtide::replay
