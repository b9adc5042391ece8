// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/open_files.hpp"

#include <algorithm>
#include <string>
#include <sys/resource.h>

namespace serve {

kvtide::result<open_files_plan> plan_open_files(std::uint64_t soft,
                                                std::uint64_t hard,
                                                std::size_t connections) {
  const auto needed = other_files + connections;
  const auto allowed = std::max(soft, std::min(hard, needed));
  if (allowed <= other_files)
    return kvtide::error{kvtide::ec::invalid_options,
                         "This process may have only " + std::to_string(allowed)
                           + " files open; allow at least "
                           + std::to_string(other_files + 1)
                           + ", for example with 'ulimit -n 1100'."};
  return open_files_plan{
    allowed, static_cast<std::size_t>(std::min(allowed, needed) - other_files)};
}

kvtide::result<std::size_t> allow_open_files(std::size_t connections) {
  auto limit = rlimit{};
  // It fails for no reason that could be here.
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return connections;
  auto plan = plan_open_files(limit.rlim_cur, limit.rlim_max, connections);
  if (!plan)
    return plan.failure();
  if (plan.value().soft > limit.rlim_cur) {
    auto raised = limit;
    raised.rlim_cur = plan.value().soft;
    if (setrlimit(RLIMIT_NOFILE, &raised) != 0) {
      plan = plan_open_files(limit.rlim_cur, limit.rlim_cur, connections);
      if (!plan)
        return plan.failure();
    }
  }
  return plan.value().connections;
}

} // namespace serve
