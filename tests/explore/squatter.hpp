// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "core/host_pool.hpp"

#include <cstddef>
#include <vector>

namespace kvtide::explore {

/// While it lives it has everything that a host pool could give, but for `left`
/// slots: what others ask for beyond them is refused.
class squatter {
public:
  squatter(core::host_pool& pool, std::size_t left);

  squatter(const squatter&) = delete;

  squatter& operator=(const squatter&) = delete;

  ~squatter();

private:
  core::host_pool* pool_;
  std::vector<chunk_key> taken_;
};

} // namespace kvtide::explore
