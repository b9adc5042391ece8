// SPDX-License-Identifier: Apache-2.0

#include "gpu/kv_registration.hpp"

#include "gpu/cuda/devices.hpp"
#include "gpu/each_once.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace kvtide::gpu {

result<kv_registration> open_kv(const kv_memory& memory,
                                const registration_config& config,
                                host_pool_memory& pool) {
  auto shape = make_geometry(memory, config.groups, config.blocks_per_chunk,
                             config.domain);
  if (!shape)
    return shape.failure();
  if (config.domain == memory_domain::any)
    if (auto refused = check_on_device(memory); refused.code != ec::none)
      return refused;
  auto opened = pool.open(shape.value(), memory, config.pool);
  if (!opened)
    return opened.failure();
  return kv_registration{std::move(shape).value(), opened.value()};
}

result<copy_job> make_copies(const job& what, const kv_registration& where) {
  if (what.kind != job_kind::store && what.kind != job_kind::load)
    return error{ec::invalid_argument,
                 "job " + std::to_string(what.id)
                   + " is neither a store nor a load: check job::kind"};
  auto out = copy_job{};
  out.id = what.id;
  out.kind = what.kind;
  out.slots.reserve(what.rows.size());
  for (std::size_t i = 0; i < what.rows.size(); ++i) {
    const auto& row = what.rows[i];
    auto refused = where.geometry.append_fragments(
      what.kind, row, static_cast<std::uint32_t>(i), row.key.group, where.pool,
      out.fragments);
    if (refused.code != ec::none)
      return refused;
    out.slots.push_back(row.slot);
  }
  // Each slot once: slot order counts users.
  out.slots = each_once(std::move(out.slots));
  return out;
}

} // namespace kvtide::gpu
