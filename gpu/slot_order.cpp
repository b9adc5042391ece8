// SPDX-License-Identifier: Apache-2.0

#include "gpu/slot_order.hpp"

namespace kvtide::gpu {

void slot_order::add(job_id id, job_kind kind,
                     const std::vector<slot_id>& slots,
                     std::vector<job_id>& before) {
  for (const auto slot : slots) {
    auto& entry = users_[slot];
    if (entry.writer && *entry.writer != id)
      before.push_back(*entry.writer);
    if (kind == job_kind::load) {
      entry.readers.push_back(id);
      continue;
    }
    before.insert(before.end(), entry.readers.begin(), entry.readers.end());
    // Whoever comes later waits for this writer, which waits for them.
    entry.readers.clear();
    entry.writer = id;
  }
}

void slot_order::remove(job_id id, const std::vector<slot_id>& slots) {
  for (const auto slot : slots) {
    const auto found = users_.find(slot);
    if (found == users_.end())
      continue;
    auto& entry = found->second;
    if (entry.writer == id)
      entry.writer.reset();
    std::erase(entry.readers, id);
    if (!entry.writer && entry.readers.empty())
      users_.erase(found);
  }
}

} // namespace kvtide::gpu
