// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/copy_commands.hpp"

#include "gpu/cuda/batch_call.hpp"
#include "gpu/cuda/status.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::gpu {

namespace {

/// The accesses of the kernel are wide only if both sides are alike.
bool alike(const fragment& what) noexcept {
  return reinterpret_cast<std::uintptr_t>(what.dst) % 16
      == reinterpret_cast<std::uintptr_t>(what.src) % 16;
}

} // namespace

copy_commands::copy_commands(settings how, piece_tables& tables,
                             device_view view)
  : how_(how), tables_(&tables), view_(std::move(view)) {
  // nop
}

enqueued_fragments copy_commands::enqueue(job_kind kind,
                                          const std::vector<fragment>& what,
                                          cudaStream_t stream) {
  auto out = enqueued_fragments{};
  small_.clear();
  large_.clear();
  for (std::size_t i = 0; i < what.size(); ++i)
    (suits_kernel(what[i]) ? small_ : large_).push_back(i);
  const auto by_kernel = enqueue_kernel(kind, what, stream, out);
  // What the kernel did not take goes with the others, in the order of rows.
  if (by_kernel < small_.size()) {
    const auto middle = large_.insert(
      large_.end(), small_.begin() + static_cast<std::ptrdiff_t>(by_kernel),
      small_.end());
    std::inplace_merge(large_.begin(), middle, large_.end());
  }
  auto taken = std::size_t{0};
  if (how_.path != copy_path::plain && batches_)
    taken = enqueue_batch(what, large_, stream);
  taken = enqueue_plain(what, large_, taken, stream, out.why);
  out.count = taken < large_.size() ? large_[taken] : what.size();
  return out;
}

bool copy_commands::suits_kernel(const fragment& what) const noexcept {
  switch (how_.path) {
    case copy_path::kernel:
      return true;
    case copy_path::automatic:
      return what.bytes < how_.kernel_below && alike(what);
    case copy_path::batch:
    case copy_path::plain:
      break;
  }
  return false;
}

std::size_t copy_commands::enqueue_kernel(job_kind kind,
                                          const std::vector<fragment>& what,
                                          cudaStream_t stream,
                                          enqueued_fragments& out) {
  if (small_.empty())
    return 0;
  out.table = tables_->take();
  if (!out.table)
    return 0; // More slices under way than tables: other paths need none.
  auto* table = out.table->host();
  auto pieces = std::uint32_t{0};
  auto taken = std::size_t{0};
  for (; taken < small_.size(); ++taken) {
    const auto& next = what[small_[taken]];
    const auto needed = (next.bytes + longest_piece - 1) / longest_piece;
    if (needed > piece_tables::capacity - pieces)
      break;
    auto* host = kind == job_kind::store ? next.dst : next.src;
    auto* seen = view_(host, next.bytes);
    if (seen == nullptr)
      break;
    auto* dst
      = static_cast<std::byte*>(kind == job_kind::store ? seen : next.dst);
    const auto* src = static_cast<const std::byte*>(
      kind == job_kind::store ? next.src : seen);
    for (std::uint64_t at = 0; at < next.bytes; at += longest_piece)
      table[pieces++]
        = {dst + at, src + at, std::min(longest_piece, next.bytes - at)};
  }
  if (taken == 0)
    return 0;
  const auto status = launch_copy_pieces(out.table->device(), pieces,
                                         how_.kernel_blocks, stream);
  ignore(status);
  return status == cudaSuccess ? taken : 0;
}

std::size_t
copy_commands::enqueue_batch(const std::vector<fragment>& what,
                             const std::vector<std::size_t>& indices,
                             cudaStream_t stream) {
  if (indices.empty())
    return 0;
  dsts_.clear();
  srcs_.clear();
  sizes_.clear();
  for (const auto i : indices) {
    const auto& next = what[i];
    dsts_.push_back(next.dst);
    srcs_.push_back(const_cast<void*>(next.src));
    sizes_.push_back(next.bytes);
  }
  const auto status = copy_batch(dsts_.data(), srcs_.data(), sizes_.data(),
                                 indices.size(), stream);
  ignore(status);
  if (status == cudaErrorCallRequiresNewerDriver
      || status == cudaErrorNotSupported)
    batches_ = false;
  return status == cudaSuccess ? indices.size() : 0;
}

std::size_t copy_commands::enqueue_plain(
  const std::vector<fragment>& what, const std::vector<std::size_t>& indices,
  std::size_t first, cudaStream_t stream, error& why) {
  for (; first < indices.size(); ++first) {
    const auto& next = what[indices[first]];
    why = check("cudaMemcpyAsync",
                ::cudaMemcpyAsync(next.dst, next.src, next.bytes,
                                  cudaMemcpyDefault, stream));
    if (why.code != ec::none)
      break;
  }
  return first;
}

} // namespace kvtide::gpu
