// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/kv_memory.hpp"
#include "kvtide/result.hpp"

#include "gpu/geometry.hpp"
#include "gpu/host_memory.hpp"
#include "gpu/memory_registrar.hpp"
#include "gpu/named_pool.hpp"
#include "gpu/registration_pieces.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kvtide::gpu {

/// How a host pool is made.
struct host_pool_config {
  /// Rounded down to whole slots; zero gives none.
  std::uint64_t host_bytes = 0;

  host_memory_options memory;

  /// Pins the pool; null leaves it to the kernel. The pool keeps it until its
  /// memory is given back, longer than the rank whose device made it.
  std::shared_ptr<memory_registrar> registrar;

  /// Upper limit of one registration, in bytes: drivers refuse larger ones
  /// (MEM-01).
  std::uint64_t largest_piece = std::uint64_t{64} << 30;

  /// Go on with a pool that is not pinned if a registration is refused. Copies
  /// then need pinned buffers in between and are slower. Otherwise a refusal is
  /// an error.
  bool allow_pageable = false;

  /// The pool outlives its process if set.
  std::optional<named_pool_config> named;
};

/// What a host pool is, for the log and for counters.
struct host_pool_status {
  /// `host_pool_config::host_bytes`; `memory.bytes` of them are in use, which
  /// is whole slots.
  std::uint64_t asked_bytes = 0;

  std::uint32_t slots = 0;

  std::uint64_t slot_bytes = 0;

  /// All of it is registered. False without a registrar.
  bool pinned = false;

  host_memory_facts memory;

  /// Empty unless `pinned`.
  registration_pieces pieces;

  /// What is not as asked for, a sentence each, beside `memory.notes`.
  std::vector<std::string> notes;
};

/// One line: size, slots, pages, node and pieces. Notes are left out.
[[nodiscard]] std::string to_string(const host_pool_status& status);

/// What the log should say of a pool: that line, then all notes.
[[nodiscard]] std::vector<std::string> notes_of(const host_pool_status& status);

/// The memory of one host pool. Ranks of one process that hold replicas share
/// one; it then outlives each of them. The lock is taken at registration only,
/// by actors that may run at the same time.
class host_pool_memory {
public:
  host_pool_memory() = default;

  host_pool_memory(const host_pool_memory&) = delete;

  host_pool_memory& operator=(const host_pool_memory&) = delete;

  /// Takes back the registrations, last one first, then the memory.
  /// @pre no copy touches the pool any more
  ~host_pool_memory();

  /// Maps the memory and registers it, or finds the one mapped before: content
  /// survives that a rank unregisters and comes back. What the first
  /// successful call asked for holds for all others. After an error nothing is
  /// left mapped or registered.
  /// @param memory its references, and the model's fingerprint if the pool has
  ///               a name, say what the bytes of a slot mean.
  /// @returns `ec::invalid_argument` if an earlier registration filled slots of
  ///          another form, `ec::invalid_options` if not one slot fits into
  ///          `host_bytes` or no piece into `largest_piece`,
  ///          `ec::out_of_memory`, the code of the registrar's refusal, or
  ///          what `named_pool::open` says.
  [[nodiscard]] result<slot_pool> open(const geometry& geometry,
                                       const kv_memory& memory,
                                       const host_pool_config& config);

  /// All zero before the first successful `open`, then always the same.
  [[nodiscard]] host_pool_status status() const;

  /// Null before the first successful `open`, and if the pool has no name.
  [[nodiscard]] std::shared_ptr<named_pool> named() const;

private:
  struct piece {
    group_id group = 0;
    std::uint32_t layer = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const piece&, const piece&) = default;
  };

  mutable std::mutex mutex_;
  bool opened_ = false;
  std::vector<piece> form_;
  /// Kept by engines, too; they end before the memory.
  std::shared_ptr<named_pool> named_;
  host_memory memory_;
  slot_pool pool_;
  host_pool_status status_;
  /// Set if `status_.pinned`.
  std::shared_ptr<memory_registrar> registrar_;
};

} // namespace kvtide::gpu
