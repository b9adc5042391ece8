// SPDX-License-Identifier: Apache-2.0

/// @file
/// Copies and fills. Each is made in two halves per fragment, in any order, so
/// that whoever looks too early sees torn bytes.

#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace kvtide::stand_in {
namespace {

/// One copy of an operation.
struct fragment {
  place to;
  place from;
  std::size_t bytes;
  cudaMemcpySrcAccessOrder order = cudaMemcpySrcAccessOrderStream;
};

bool on_device(const place& at) {
  return at.owner && at.owner->kind == memory_kind::device;
}

/// Looks both ends of a copy up.
cudaError_t find_both(machine& m, void* to, const void* from, std::size_t bytes,
                      fragment& found) {
  if (to == nullptr || from == nullptr)
    return m.refuse(cudaErrorInvalidValue, "a null pointer");
  found = {m.find(to, bytes), m.find(from, bytes), bytes};
  if (found.to.crosses_border || found.from.crosses_border)
    return m.refuse(cudaErrorInvalidValue,
                    "a copy must stay within one allocation or registration");
  return cudaSuccess;
}

/// CUDA Runtime API, cudaMemcpyAsync: the kind must say the truth, unless it is
/// cudaMemcpyDefault, which leaves it to the pointers.
bool kind_is_true(cudaMemcpyKind kind, const fragment& copied) {
  switch (kind) {
    case cudaMemcpyDefault:
      return true;
    case cudaMemcpyHostToHost:
      return !on_device(copied.to) && !on_device(copied.from);
    case cudaMemcpyHostToDevice:
      return on_device(copied.to) && !on_device(copied.from);
    case cudaMemcpyDeviceToHost:
      return !on_device(copied.to) && on_device(copied.from);
    case cudaMemcpyDeviceToDevice:
      return on_device(copied.to) && on_device(copied.from);
    default:
      return false;
  }
}

void touch(operation& made, const place& at, std::size_t bytes) {
  made.touches.push_back({at.host, bytes});
  if (at.owner)
    made.regions.push_back(at.owner);
}

/// Adds the two halves of one copy.
void add_halves(operation& made, const fragment& copied) {
  touch(made, copied.to, copied.bytes);
  touch(made, copied.from, copied.bytes);
  const auto half = copied.bytes / 2;
  const auto* from = copied.from.host;
  auto* to = copied.to.host;
  made.pieces.emplace_back([=] { std::memcpy(to, from, half); });
  made.pieces.emplace_back([=, rest = copied.bytes - half] {
    std::memcpy(to + half, from + half, rest);
  });
}

/// The same, of a source that CUDA may read before the stream gets there: all
/// of it during the call, or half of it then and half of it later.
void add_early_halves(machine& m, operation& made, const fragment& copied) {
  touch(made, copied.to, copied.bytes);
  const auto half = copied.bytes / 2;
  const auto rest = copied.bytes - half;
  const bool all = copied.order == cudaMemcpySrcAccessOrderDuringApiCall;
  const auto* from = copied.from.host;
  auto* to = copied.to.host;
  // The caller's own reads, which the sanitizer shall see.
  m.mutex.unlock();
  auto early = std::make_shared<std::vector<std::byte>>(
    from, from + (all ? copied.bytes : half));
  m.mutex.lock();
  made.pieces.emplace_back([=] { std::memcpy(to, early->data(), half); });
  if (all) {
    made.pieces.emplace_back(
      [=] { std::memcpy(to + half, early->data() + half, rest); });
  } else {
    touch(made, copied.from, copied.bytes);
    made.pieces.emplace_back(
      [=] { std::memcpy(to + half, from + half, rest); });
  }
}

void shuffle(machine& m, std::vector<std::function<void()>>& pieces) {
  for (auto left = pieces.size(); left > 1; --left)
    std::swap(pieces[left - 1], pieces[m.draw(left)]);
}

/// Which attributes apply to which copy of a batch.
struct attribute_list {
  const cudaMemcpyAttributes* attributes;
  const std::size_t* first_copies;
  std::size_t size;
};

/// @returns what is wrong, or nullptr.
const char* wrong_with(const attribute_list& list, std::size_t count) {
  if (list.size == 0 || list.size > count)
    return "numAttrs must be 1 to count";
  if (list.attributes == nullptr || list.first_copies == nullptr)
    return "no attributes";
  if (list.first_copies[0] != 0)
    return "attrsIdxs must begin with 0";
  for (std::size_t i = 0; i < list.size; ++i) {
    if (i > 0 && list.first_copies[i] <= list.first_copies[i - 1])
      return "attrsIdxs must ascend";
    if (list.first_copies[i] >= count)
      return "attrsIdxs must be less than count";
    const auto order = list.attributes[i].srcAccessOrder;
    if (order < cudaMemcpySrcAccessOrderStream
        || order > cudaMemcpySrcAccessOrderAny)
      return "srcAccessOrder must be chosen";
    if (list.attributes[i].flags > cudaMemcpyFlagPreferOverlapWithCompute)
      return "unknown flags";
  }
  return nullptr;
}

/// Looks one copy of a batch up.
cudaError_t find_fragment(machine& m, void* to, const void* from,
                          std::size_t bytes, cudaMemcpySrcAccessOrder order,
                          fragment& found) {
  if (bytes == 0)
    return m.refuse(cudaErrorInvalidValue, "a copy of no bytes");
  if (const auto code = find_both(m, to, from, bytes, found);
      code != cudaSuccess)
    return code;
  found.order = order;
  // Stack and heap are promised only for sources that are not read in stream
  // order.
  if (!found.to.owner)
    return m.refuse(cudaErrorInvalidValue, "the destination is not registered");
  if (!found.from.owner && order == cudaMemcpySrcAccessOrderStream)
    return m.refuse(cudaErrorInvalidValue, "the source is not registered");
  if (!found.from.owner)
    m.warn("the source is pageable");
  return cudaSuccess;
}

/// @param failed becomes the index of the copy that is wrong.
cudaError_t copy_batch(machine& m, void* const* to, const void* const* from,
                       const std::size_t* sizes, std::size_t count,
                       const attribute_list& list, cudaStream_t stream,
                       std::size_t& failed) {
  // CUDA Runtime API, cudaMemcpyBatchAsync: not on the legacy default stream.
  if (stream == nullptr || stream == cudaStreamLegacy)
    return m.refuse(cudaErrorInvalidValue, "not on the legacy default stream");
  stream_ptr found;
  if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
    return code;
  if (count == 0 || to == nullptr || from == nullptr || sizes == nullptr)
    return m.refuse(cudaErrorInvalidValue, "no copies");
  if (const auto* what = wrong_with(list, count); what != nullptr)
    return m.refuse(cudaErrorInvalidValue, what);
  if (const auto code = m.check_usable(*found); code != cudaSuccess)
    return code;
  std::vector<fragment> copies(count);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (next + 1 < list.size && list.first_copies[next + 1] == i)
      ++next;
    if (const auto code
        = find_fragment(m, to[i], from[i], sizes[i],
                        list.attributes[next].srcAccessOrder, copies[i]);
        code != cudaSuccess) {
      failed = i;
      return code;
    }
  }
  auto made = std::make_shared<operation>();
  for (const auto& copied : copies)
    if (copied.order == cudaMemcpySrcAccessOrderStream || found->capturing)
      add_halves(*made, copied);
    else
      add_early_halves(m, *made, copied);
  shuffle(m, made->pieces);
  return m.enter(found, std::move(made));
}

} // namespace
} // namespace kvtide::stand_in

using namespace kvtide::stand_in;

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (count == 0)
      return m.check_usable(*found);
    fragment copied;
    if (const auto code = find_both(m, dst, src, count, copied);
        code != cudaSuccess)
      return code;
    if (!kind_is_true(kind, copied))
      return m.refuse(kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault
                        ? cudaErrorInvalidMemcpyDirection
                        : cudaErrorInvalidValue,
                      "the kind is not what the pointers are");
    auto made = std::make_shared<operation>();
    const auto end = made->done;
    add_halves(*made, copied);
    shuffle(m, made->pieces);
    const bool runs = !found->capturing;
    if (const auto code = m.enter(found, std::move(made)); code != cudaSuccess)
      return code;
    // CUDA Runtime API, API synchronization behavior: with pageable memory, the
    // copy is made before the call returns.
    if (copied.to.owner && copied.from.owner)
      return cudaSuccess;
    m.warn("pageable memory makes the call wait for the copy");
    return runs ? m.wait_for({end}, found->device) : cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count,
                            cudaStream_t stream) {
  return call("cudaMemsetAsync", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (count == 0)
      return m.check_usable(*found);
    const auto at = m.find(devPtr, count);
    if (!at.owner)
      return m.refuse(cudaErrorInvalidValue,
                      "not within one allocation or registration");
    auto made = std::make_shared<operation>();
    touch(*made, at, count);
    const auto half = count / 2;
    made->pieces.emplace_back([=] { std::memset(at.host, value, half); });
    made->pieces.emplace_back(
      [=] { std::memset(at.host + half, value, count - half); });
    return m.enter(found, std::move(made));
  });
}

#if CUDART_VERSION >= 13000

cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs,
                                 const size_t* sizes, size_t count,
                                 cudaMemcpyAttributes* attrs, size_t* attrsIdxs,
                                 size_t numAttrs, cudaStream_t stream) {
  return call("cudaMemcpyBatchAsync", needs::handle, [&](machine& m) {
    std::size_t failed = 0;
    return copy_batch(m, dsts, srcs, sizes, count, {attrs, attrsIdxs, numAttrs},
                      stream, failed);
  });
}

#else

// CUDA Runtime API 12.8, cudaMemcpyBatchAsync: on failure, failIdx is the copy
// that is wrong, or SIZE_MAX if it is not about one of them.
cudaError_t cudaMemcpyBatchAsync(void** dsts, void** srcs, size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attrs,
                                 size_t* attrsIdxs, size_t numAttrs,
                                 size_t* failIdx, cudaStream_t stream) {
  auto failed = std::numeric_limits<std::size_t>::max();
  const auto code
    = call("cudaMemcpyBatchAsync", needs::handle, [&](machine& m) {
        return copy_batch(m, dsts, srcs, sizes, count,
                          {attrs, attrsIdxs, numAttrs}, stream, failed);
      });
  if (code != cudaSuccess && failIdx != nullptr)
    *failIdx = failed;
  return code;
}

#endif
