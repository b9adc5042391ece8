// SPDX-License-Identifier: Apache-2.0

/// @file
/// Trouble below the engine: copies that fail, copies of wrong bytes, actors
/// that die. Reaches into the runtime; the product is as it is.

#pragma once

#include "kvtide/job.hpp"

#include "examples/serve/engine/engine_options.hpp"
#include "gpu/copy_fault.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace serve::test {

/// Keeps copies running until it is opened: their bytes are copied, but nobody
/// hears that they ended, and destroying whoever makes them waits, as it does
/// for a copy that runs. Any thread.
class copy_gate {
public:
  /// @param kind of the copies that it keeps; nothing for all
  explicit copy_gate(std::optional<kvtide::job_kind> kind = {});

  copy_gate(const copy_gate&) = delete;
  copy_gate& operator=(const copy_gate&) = delete;

  /// Opens it, so that a test which ends early does not wait for ever.
  ~copy_gate();

  /// Waits until it keeps a copy, or has kept one.
  /// @returns false if none came in a minute
  [[nodiscard]] bool has_kept() const;

  /// For good. All copies end now, and later ones by themselves.
  void open();

  struct state;

private:
  friend void add_gate(engine_options& opts, const copy_gate& gate);

  std::shared_ptr<state> state_;
};

/// What goes wrong with the copies of a cache. Asked on one thread, the
/// device's.
struct copy_trouble {
  std::function<kvtide::gpu::copy_fault(kvtide::job_id, kvtide::job_kind)>
    fault;
  /// Before a load reads the host pool, some of what it reads is changed there.
  /// Counts loads whose bytes are wrong.
  std::shared_ptr<std::atomic<std::uint64_t>> corrupted;
};

/// Starts the cache's rank again with a device that has trouble, whenever the
/// engine starts a cache.
void add_trouble(engine_options& opts, copy_trouble what);

/// The same with a device whose copies a gate keeps.
void add_gate(engine_options& opts, const copy_gate& gate);

/// Ends actors of the cache that an engine started last. Any thread.
class cache_killer {
public:
  /// Hears of each cache that the engine starts.
  explicit cache_killer(engine_options& opts);

  /// As by a bug in it: the actor is gone without a word.
  void kill_scheduler();
  void kill_cache_manager();
  void kill_worker();

  /// Caches that were started.
  [[nodiscard]] std::uint64_t started() const;

private:
  struct handles;
  std::shared_ptr<handles> handles_;
};

} // namespace serve::test
