// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/bounce_buffer.hpp"

#include "gpu/fragments.hpp"

#include <cstdint>
#include <utility>

namespace kvtide::gpu {

namespace {

/// Each fragment begins where its device address does, modulo this, so that
/// wide accesses stay possible.
constexpr std::uint64_t alignment = 16;

} // namespace

result<bounce_buffer> bounce_buffer::make(std::uint64_t bytes) {
  auto memory = make_pinned_buffer(bytes + 2 * alignment * most_fragments);
  if (!memory)
    return memory.failure();
  auto device = device_address_of(memory.value().get());
  if (!device)
    return device.failure();
  auto made = bounce_buffer{};
  made.memory_ = std::move(memory).value();
  made.device_ = static_cast<std::byte*>(device.value());
  made.room_ = bytes;
  return made;
}

std::unique_ptr<bounce_move>
bounce_buffer::redirect(job_kind kind, std::vector<fragment>& parts) const {
  auto out = std::make_unique<bounce_move>();
  out->parts.reserve(parts.size());
  auto* base = static_cast<std::byte*>(memory_.get());
  auto next = std::uint64_t{0};
  for (auto& part : parts) {
    const auto* on_device = kind == job_kind::store ? part.src : part.dst;
    next = (next + alignment - 1) / alignment * alignment
         + reinterpret_cast<std::uintptr_t>(on_device) % alignment;
    auto* here = base + next;
    next += part.bytes;
    if (kind == job_kind::store) {
      out->parts.push_back({part.dst, here, part.bytes, part.row, part.tensor});
      part.dst = here;
    } else {
      out->parts.push_back({here, part.src, part.bytes, part.row, part.tensor});
      part.src = here;
    }
  }
  return out;
}

void* bounce_buffer::device_address(const void* host) const noexcept {
  return device_
       + (static_cast<const std::byte*>(host)
          - static_cast<const std::byte*>(memory_.get()));
}

void make_bounce_move(void* data) {
  const auto& parts = static_cast<bounce_move*>(data)->parts;
  copy_range(parts, 0, total_bytes(parts));
}

} // namespace kvtide::gpu
