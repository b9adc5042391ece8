// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/open_network.hpp"

namespace kvtide::replay {

result<std::shared_ptr<network>> open_network(const network_options&) {
  return error{ec::unsupported, "--workers: this program was built without "
                                "kvtide::net, so all ranks have to be here"};
}

std::string place_of(const network&) {
  return {};
}

} // namespace kvtide::replay
