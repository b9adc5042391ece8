// SPDX-License-Identifier: Apache-2.0

/// @file
/// Everything that is decided before the runtime starts.

#pragma once

#include "kvtide/cuda_options.hpp"
#include "kvtide/ids.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvtide {

/// No span of time may be longer. Options that are fail; calls that wait longer
/// wait this long.
inline constexpr std::chrono::hours longest_wait{24 * 365};

/// Layers that share one block table.
struct group_options {
  /// Tokens per block of this group, at least 1.
  std::int32_t tokens_per_block = 16;

  /// Width of the sliding window in tokens; zero means full attention.
  std::int32_t sliding_window_tokens = 0;

  /// True for the layers of a draft model (EAGLE, MTP), whose last chunk is
  /// not settled while the request decodes.
  bool draft = false;
};

/// Which behaviour the runtime shows where today's engines have known faults.
enum class rule_set : std::uint8_t {
  /// As recorded from comparable engines; stores every known token at the end.
  reference,
  /// The same, but the last sampled token is not stored.
  reference_committed,
  /// Rules R1 to R16 of docs/rules.md. The default.
  safe,
};

enum class eviction_policy : std::uint8_t {
  /// Least recently used.
  lru,
  /// Adaptive replacement cache (Megiddo and Modha, FAST 2003);
  /// docs/conformance.md, C12.
  arc,
};

/// Where a rank's copies and their time come from.
enum class device_kind : std::uint8_t {
  /// Plain memory, copies by worker threads, real time.
  host,
  /// Plain memory, copies by worker threads, but announced in simulated time,
  /// which moves only by `runtime::advance`.
  host_virtual,
  /// A GPU of this machine: `kv_memory::device`. The host pool is pinned.
  cuda,
};

/// How plans reach the ranks.
enum class plan_delivery : std::uint8_t {
  /// The scheduler sends them to each rank.
  direct,
  /// They are part of the answer to `step` as opaque bytes, and the engine
  /// hands them to each rank's `begin_step`.
  by_engine,
};

/// What happens when messages arrive in an order that S1 to S13 exclude.
enum class order_checks : std::uint8_t {
  /// Only what the runtime has to notice in order to ignore it is counted.
  off,
  /// Everything is checked; a breach is counted, and logged once per kind. The
  /// default: it costs next to nothing.
  count,
  /// As `count`, but a breach of S1 to S13 is logged and ends the process. For
  /// an embedder's own debug builds; wrong calls never end it.
  fatal,
};

class network;
class publisher;

/// In which process the worker of a rank lives.
struct worker_place {
  enum class kind : std::uint8_t {
    /// In the process of the runtime: `runtime::local_rank`.
    here,
    /// In another process (kvtide/worker.hpp) that dials
    /// `network_options::listen`.
    dials_in,
    /// In another process that listens: the runtime dials `address`.
    dialed,
  };

  kind where = kind::here;
  /// "host:port"; only of `dialed`. Ranks of one process share one.
  std::string address;
};

/// Configures one runtime. Read once by `runtime::start`, not kept.
struct options {
  /// KV groups in order. At least one.
  std::vector<group_options> groups{group_options{}};

  /// Blocks per chunk, the same for all groups, at least 1. A chunk is the unit
  /// that has a key and is stored or loaded whole.
  std::int32_t blocks_per_chunk = 8;

  /// Tokens covered by one prefix hash. Every group's chunk must be a multiple
  /// of it.
  std::int32_t tokens_per_hash = 16;

  /// Names the weights and the layout. Part of every key: content of another
  /// model is never found.
  std::string model_fingerprint;

  /// Tensor-parallel ranks, 1 to 64.
  std::uint32_t ranks = 1;

  /// Where each rank's worker lives, one per rank; empty: all here.
  std::vector<worker_place> workers;

  /// Required if a worker lives elsewhere; see kvtide/network.hpp.
  std::shared_ptr<kvtide::network> network;

  /// Host pool per rank, in bytes, rounded down to whole slots once the ranks
  /// have said how large a chunk is. Zero turns offloading off: no thread is
  /// started, and every call is answered before it returns, as by a cache
  /// without room. Nothing is remembered of requests then, so a call that names
  /// an unknown one does not fail, and `step_call::rows` may be left empty.
  std::uint64_t host_bytes = 0;

  /// Names host pools that outlive their process, in /dev/shm: a rank that is
  /// started again finds its chunks there. Empty: memory of the process alone.
  std::string pool_name;

  eviction_policy policy = eviction_policy::lru;

  /// A chunk is stored only from its n-th lookup on; 1 turns this off.
  std::uint32_t store_threshold = 1;

  /// Never store decoded tokens.
  bool offload_prompt_only = false;

  /// Remember which chunks are being loaded, so that two requests do not load
  /// the same chunk twice (docs/conformance.md, C4).
  bool enable_prefix_caching = true;

  /// Note what is stored and removed, for `runtime::take_events`. Whoever wants
  /// that has to take the events now and then: they are kept until then.
  bool cache_events = false;

  /// Tells a directory which chunks the host pool has, so that prompts can be
  /// sent where they are cached; see kvtide/directory.hpp. Independent of
  /// `cache_events`.
  std::shared_ptr<kvtide::publisher> publisher;

  rule_set rules = rule_set::safe;

  /// Lookups that may answer "ask again" per admission (R7), at least 0.
  std::uint32_t max_deferrals = 32;

  /// Steps after which an unused promise ends (R11), at least 1.
  std::uint32_t promise_steps = 64;

  /// Times a chunk whose store failed is offered again (R8).
  std::uint32_t store_retries = 2;

  /// Store jobs in flight beyond which new stores are refused and the engine
  /// gets `overload`. Only under `rule_set::safe`.
  std::uint32_t max_store_jobs = 4'096;

  /// Longest time a copy may take before its job is reported late (S9).
  std::chrono::milliseconds job_deadline{10'000};

  /// Without a next step, deferred stores are submitted and finished requests
  /// are planned after this time (S13).
  std::chrono::milliseconds idle_delay{5};

  plan_delivery delivery = plan_delivery::direct;

  device_kind device = device_kind::host;

  /// Host devices only: added to each copy job. With `device_kind::host` a
  /// lower bound of what a job takes.
  std::chrono::microseconds copy_latency{0};

  /// Host devices only: bytes per second in each direction; zero means as fast
  /// as the memory is (`host`), or at once (`host_virtual`).
  std::uint64_t copy_bytes_per_second = 0;

  /// `device_kind::cuda` only; checked whatever the device.
  cuda_options cuda;

  kvtide::order_checks order_checks = kvtide::order_checks::count;

  /// Threads that run the actors, 1 to 256.
  std::uint32_t actor_threads = 1;
};

} // namespace kvtide
