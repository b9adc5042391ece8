// SPDX-License-Identifier: Apache-2.0

/// @file
/// How a rank describes its KV memory to `register_kv`.

#pragma once

#include "kvtide/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvtide {

/// Where a tensor's memory comes from.
enum class memory_kind : std::uint8_t {
  /// Plain host memory; the only kind that the host devices accept.
  host,
  /// cudaMalloc.
  device,
  /// Virtual-memory-managed or expandable segments: addresses stay while
  /// mappings may vanish.
  device_mapped,
};

/// One allocation that holds `blocks` blocks at equal distance.
struct kv_tensor {
  void* base = nullptr;
  std::uint64_t bytes = 0;
  memory_kind kind = memory_kind::host;
  /// Number of blocks, ids 0 to `blocks - 1`.
  std::uint32_t blocks = 0;
  /// Distance between two blocks, in bytes.
  std::uint64_t block_stride = 0;
  /// Bytes of one block that belong to KV; at most `block_stride`.
  std::uint64_t page_bytes = 0;
};

/// A piece of each block that belongs to one layer of one group. K and V in
/// separate planes are two references; several layers packed in one block are
/// several references to one tensor; several groups may share a tensor.
struct kv_reference {
  group_id group = 0;
  std::uint32_t layer = 0;
  /// Index in `kv_memory::tensors`.
  std::uint32_t tensor = 0;
  /// Offset inside the block's page, in bytes.
  std::uint64_t offset = 0;
  /// Bytes per block, at least 1.
  std::uint64_t bytes = 0;
};

/// Everything a rank says about its memory. It must stay valid and mapped
/// until `unregister_kv` was answered.
struct kv_memory {
  rank_id rank = 0;
  /// Device ordinal; ignored by the host devices.
  int device = 0;
  std::vector<kv_tensor> tensors;
  /// Their order is the order of the bytes inside a slot.
  std::vector<kv_reference> references;
  /// Handles of all streams on which the rank computes. With
  /// `device_kind::cuda` at least one; ignored by the host devices.
  std::vector<std::uint64_t> streams;
  /// For replicated layouts: this rank writes the stores of the jobs `id` with
  /// `id % writers == writer`; one writer of one rank is the usual case. With
  /// several, a rank whose `writer` equals `writers` never writes.
  /// Ranks of one process with several `writers` share a host pool, so a rank
  /// that registers again keeps to one writer or to several.
  std::uint32_t writer = 0;
  std::uint32_t writers = 1;
  /// Must equal `options::model_fingerprint`.
  std::string model_fingerprint;
};

} // namespace kvtide
