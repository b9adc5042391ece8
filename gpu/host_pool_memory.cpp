// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_pool_memory.hpp"

#include <string>
#include <utility>

namespace kvtide::gpu {

result<slot_pool> host_pool_memory::open(const geometry& geometry,
                                         const kv_memory& memory,
                                         std::uint64_t host_bytes) {
  std::vector<piece> form;
  form.reserve(memory.references.size());
  for (const auto& ref : memory.references)
    form.push_back({ref.group, ref.layer, ref.bytes});
  const std::lock_guard lock{mutex_};
  if (opened_) {
    if (form != form_ || geometry.slot_bytes() != slot_bytes_)
      return error{ec::invalid_argument,
                   "the host pool holds chunks of another form: register the "
                   "same references in the same order, or start a new runtime"};
    return pool_;
  }
  const auto slots = geometry.slots_in(host_bytes);
  if (slots == 0 && host_bytes > 0)
    return error{ec::invalid_options,
                 "options::host_bytes is " + std::to_string(host_bytes)
                   + ", but one chunk takes "
                   + std::to_string(geometry.slot_bytes())
                   + " bytes: make it larger, or zero to turn offloading off"};
  auto mapped = host_memory::map(slots * geometry.slot_bytes());
  if (!mapped)
    return mapped.failure();
  memory_ = std::move(mapped).value();
  pool_ = {memory_.data(), slots};
  form_ = std::move(form);
  slot_bytes_ = geometry.slot_bytes();
  opened_ = true;
  return pool_;
}

} // namespace kvtide::gpu
