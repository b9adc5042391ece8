// SPDX-License-Identifier: Apache-2.0

#include "gpu/geometry.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace kvtide::gpu {

namespace {

constexpr auto max_bytes = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t slot_alignment = 64;

error wrong(std::string text) {
  return {ec::invalid_argument, "register_kv: " + std::move(text)};
}

std::string tensor_name(std::size_t index) {
  return "tensor " + std::to_string(index);
}

std::string reference_name(const kv_memory& memory, std::size_t index) {
  const auto& ref = memory.references[index];
  return "reference " + std::to_string(index) + " (group "
       + std::to_string(ref.group) + ", layer " + std::to_string(ref.layer)
       + ")";
}

std::string bytes_text(std::uint64_t bytes) {
  return std::to_string(bytes) + " bytes";
}

std::optional<error> check_tensor(const kv_memory& memory, std::size_t index,
                                  memory_domain domain) {
  const auto& t = memory.tensors[index];
  const auto name = tensor_name(index);
  if (domain == memory_domain::host_only && t.kind != memory_kind::host)
    return error{ec::unsupported,
                 "register_kv: " + name
                   + " is not plain host memory, which is all that a host "
                     "device can copy; choose a CUDA device"};
  if (t.kind > memory_kind::device_mapped)
    return wrong(name
                 + " has a kind that does not exist: check "
                   "kv_tensor::kind");
  if (t.base == nullptr)
    return wrong(name + " has no base address");
  if (t.bytes == 0 || t.blocks == 0 || t.page_bytes == 0)
    return wrong(name
                 + " is empty: bytes, blocks and page_bytes must be at "
                   "least 1");
  if (t.block_stride < t.page_bytes)
    return wrong(name + " has a block stride of " + bytes_text(t.block_stride)
                 + ", less than its page of " + bytes_text(t.page_bytes));
  // The last block needs its page only: a plane that starts inside a larger
  // allocation ends there.
  const auto before_last = std::uint64_t{t.blocks} - 1;
  if (t.page_bytes > t.bytes
      || (before_last > 0
          && before_last > (t.bytes - t.page_bytes) / t.block_stride))
    return wrong(name + " has " + bytes_text(t.bytes) + ", too few for "
                 + std::to_string(t.blocks) + " blocks at a stride of "
                 + bytes_text(t.block_stride));
  if (t.bytes > max_bytes - reinterpret_cast<std::uintptr_t>(t.base))
    return wrong(name + " ends beyond the address space");
  return std::nullopt;
}

std::optional<error> check_reference(const kv_memory& memory, std::size_t index,
                                     std::uint32_t groups) {
  const auto& ref = memory.references[index];
  const auto name = reference_name(memory, index);
  if (ref.group >= groups)
    return wrong(name + " names a group that is not configured; there are "
                 + std::to_string(groups));
  if (ref.tensor >= memory.tensors.size())
    return wrong(name + " names tensor " + std::to_string(ref.tensor)
                 + "; there are " + std::to_string(memory.tensors.size()));
  if (ref.bytes == 0)
    return wrong(name + " has zero bytes");
  const auto page = memory.tensors[ref.tensor].page_bytes;
  if (ref.offset > page || ref.bytes > page - ref.offset)
    return wrong(name + " has " + bytes_text(ref.bytes) + " at offset "
                 + std::to_string(ref.offset) + ", beyond the page of "
                 + bytes_text(page) + " of " + tensor_name(ref.tensor));
  return std::nullopt;
}

/// The addresses that one reference covers: `bytes` at `first`, then again
/// after each `stride`, up to `end`.
struct comb {
  std::uintptr_t first = 0;
  std::uintptr_t end = 0;
  std::uint64_t stride = 0;
  std::uint64_t bytes = 0;
};

comb comb_of(const kv_memory& memory, const kv_reference& ref) {
  const auto& t = memory.tensors[ref.tensor];
  const auto first = reinterpret_cast<std::uintptr_t>(t.base) + ref.offset;
  const auto last = first + (std::uint64_t{t.blocks} - 1) * t.block_stride;
  return {first, last + ref.bytes, t.block_stride, ref.bytes};
}

/// True if two combs share a byte. Combs of different stride count as sharing
/// one as soon as their spans meet: no layout looks like that.
bool share_a_byte(comb x, comb y) {
  if (x.first > y.first)
    std::swap(x, y);
  if (y.first >= x.end)
    return false;
  if (x.stride != y.stride)
    return true;
  const auto phase = (y.first - x.first) % x.stride;
  return phase < x.bytes || x.stride - phase < y.bytes;
}

/// Groups may share memory, since a block belongs to one of them at a time.
/// Inside a group a shared byte would be loaded twice, from two places.
std::optional<error> check_overlap(const kv_memory& memory) {
  const auto& refs = memory.references;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const auto x = comb_of(memory, refs[i]);
    for (std::size_t k = i + 1; k < refs.size(); ++k)
      if (refs[k].group == refs[i].group
          && share_a_byte(x, comb_of(memory, refs[k])))
        return wrong(reference_name(memory, i) + " and "
                     + reference_name(memory, k)
                     + " overlap: each byte of a block may be named once per "
                       "group");
  }
  return std::nullopt;
}

std::string row_name(group_id group, std::uint32_t row_index,
                     const job_row& row) {
  return "row " + std::to_string(row_index) + " (group " + std::to_string(group)
       + ", chunk " + std::to_string(row.chunk) + ", slot "
       + std::to_string(row.slot) + ")";
}

} // namespace

std::uint32_t geometry::slots_in(std::uint64_t host_bytes) const noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(host_bytes / slot_bytes_, most));
}

error geometry::append_fragments(job_kind kind, const job_row& row,
                                 std::uint32_t row_index, group_id group,
                                 const slot_pool& pool,
                                 std::vector<fragment>& out) const {
  const auto refuse = [&](const std::string& why) {
    return error{ec::invalid_argument,
                 row_name(group, row_index, row) + ": " + why};
  };
  if (group >= groups_.size())
    return refuse("there are " + std::to_string(groups_.size()) + " groups");
  if (row.slot >= pool.slots || pool.base == nullptr)
    return refuse("the host pool has " + std::to_string(pool.slots) + " slots");
  if (row.blocks.size() != blocks_per_chunk_)
    return refuse("it names " + std::to_string(row.blocks.size())
                  + " blocks, and a chunk has "
                  + std::to_string(blocks_per_chunk_));
  const auto& layout = groups_[group];
  // All checks come before the first fragment (GEO-04).
  for (const auto block : row.blocks)
    if (block >= layout.blocks)
      return refuse("block " + std::to_string(block)
                    + " is outside the registered memory, which has "
                    + std::to_string(layout.blocks) + " blocks");
  const auto first = out.size();
  auto* host = pool.base + row.slot * slot_bytes_;
  for (const auto block : row.blocks) {
    // A hole keeps its place, so block j of the chunk is always at j (GEO-01).
    auto* next_host = host + layout.block_bytes;
    if (block != no_block) {
      for (const auto& part : layout.pieces) {
        auto* device = part.base + block * part.stride;
        auto* dst = kind == job_kind::store ? host : device;
        const auto* src = kind == job_kind::store ? device : host;
        auto* last = out.size() > first ? &out.back() : nullptr;
        if (last != nullptr && last->tensor == part.tensor
            && static_cast<std::byte*>(last->dst) + last->bytes == dst
            && static_cast<const std::byte*>(last->src) + last->bytes == src)
          last->bytes += part.bytes;
        else
          out.push_back({dst, src, part.bytes, row_index, part.tensor});
        host += part.bytes;
      }
    }
    host = next_host;
  }
  return {};
}

result<geometry> make_geometry(const kv_memory& memory, std::uint32_t groups,
                               std::uint32_t blocks_per_chunk,
                               memory_domain domain) {
  if (groups == 0 || blocks_per_chunk == 0)
    return wrong("at least one group and one block per chunk must be "
                 "configured");
  for (std::size_t i = 0; i < memory.tensors.size(); ++i)
    if (auto failure = check_tensor(memory, i, domain))
      return std::move(*failure);
  for (std::size_t i = 0; i < memory.references.size(); ++i)
    if (auto failure = check_reference(memory, i, groups))
      return std::move(*failure);
  if (auto failure = check_overlap(memory))
    return std::move(*failure);
  auto made = geometry{};
  made.blocks_per_chunk_ = blocks_per_chunk;
  made.groups_.resize(groups);
  for (const auto& ref : memory.references) {
    const auto& t = memory.tensors[ref.tensor];
    auto& group = made.groups_[ref.group];
    group.blocks
      = group.pieces.empty() ? t.blocks : std::min(group.blocks, t.blocks);
    group.pieces.push_back({static_cast<std::byte*>(t.base) + ref.offset,
                            t.block_stride, ref.bytes, ref.tensor});
    // Cannot wrap: the pieces of a group do not overlap, so they fit into the
    // address space together.
    group.block_bytes += ref.bytes;
  }
  for (std::uint32_t i = 0; i < groups; ++i) {
    const auto& group = made.groups_[i];
    if (group.pieces.empty())
      return wrong("group " + std::to_string(i)
                   + " has no reference: each configured group needs memory");
    if (group.block_bytes > (max_bytes - slot_alignment) / blocks_per_chunk)
      return wrong("a chunk of group " + std::to_string(i)
                   + " is larger than the address space");
    made.slot_bytes_
      = std::max(made.slot_bytes_, group.block_bytes * blocks_per_chunk);
  }
  made.slot_bytes_
    = (made.slot_bytes_ + slot_alignment - 1) / slot_alignment * slot_alignment;
  return made;
}

} // namespace kvtide::gpu
