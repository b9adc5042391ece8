/* SPDX-License-Identifier: Apache-2.0 */

/// @file
/// The whole library for C, and for every language that can call C. C99; link
/// `libkvtide.so`. What a call means is said at the C++ call of the same name
/// in runtime.hpp and calls.hpp; here stands what is different in C.
/// docs/c_abi.md has the rules by which this interface grows.
///
/// Status. A function that can fail returns a `kvtide_status`, and
/// `kvtide_last_error` has a sentence that says what is wrong and what to do.
/// Such a call had no effect and wrote nothing to its results. Besides what is
/// named at a function, each returns
///
///   KVTIDE_INVALID_ARGUMENT   a handle or a pointer is null, a list is null
///                             and its count is not zero, a number is none of
///                             an enumeration's, `reserved` is not zero, or a
///                             `struct_size` is wrong
///   KVTIDE_UNSUPPORTED        a struct has a field set that only a later
///                             version knows
///   KVTIDE_OUT_OF_MEMORY      there was no memory for the call
///   KVTIDE_INTERNAL           a fault of this library; please report it
///
/// Most calls only send: that they return KVTIDE_OK says that they are on
/// their way, under `ticket`. What they lead to comes from `kvtide_poll`, also
/// that they had no effect (`KVTIDE_EVENT_CALL_FAILED`). `ticket` may be null
/// for callers that do not want it.
///
/// Structs. Each that a caller fills begins with `struct_size`: set it to
/// `sizeof` of the struct, also in every element of a list, and everything that
/// is not meant to say something to zero. Where zero is not the default there
/// is a function `..._init`. A shorter struct, of an earlier version, is
/// taken, and what it lacks has its default. A longer one, of a later version,
/// is taken if all it has in addition is zero.
///
/// Ownership. Whatever a call is given may be freed when it returns; only KV
/// memory that is registered must stay. Strings end with a zero byte and are
/// UTF-8; null is the empty string. What comes back belongs to the object that
/// it was asked of, for as long as is said there.
///
/// Threads. One thread at a time may use a runtime, and one at a time each of
/// its ranks; they may be different ones, and another one may take over between
/// two calls. `kvtide_event_fd`, `kvtide_wait`, their counterparts of a rank
/// and `kvtide_rank_complete_event` may be called from any thread. Nothing
/// guards `kvtide_destroy`. A batch is read by any number of threads. The
/// sentence of an error is the calling thread's.
///
/// A thread that waits in `kvtide_await` or `kvtide_rank_await` is in no call:
/// others may use what it waits at, one at a time, but neither poll nor await
/// there. Such a poll or await returns KVTIDE_OUT_OF_ORDER, takes nothing and
/// leaves no event.
///
/// A call on a second thread while a first is in one has no effect:
///
///   KVTIDE_OUT_OF_ORDER       is what a call that gives a ticket returns, and
///                             `kvtide_restart_rank`, `kvtide_rank_make_event`,
///                             `kvtide_rank_record_event`; also a poll or an
///                             await while another thread is in a poll
///   KVTIDE_OK                 is what all other calls of a rank return, and a
///                             poll, with nothing, beside another call
///
/// One event with KVTIDE_OUT_OF_ORDER says so as well of each refused call that
/// gives a ticket (KVTIDE_EVENT_CALL_FAILED, with ticket zero), and it is all
/// that says so of one that returned KVTIDE_OK (of a rank
/// KVTIDE_EVENT_RANK_FAILED).
///
/// Nothing blocks unless that is said.

#ifndef KVTIDE_KVTIDE_H
#define KVTIDE_KVTIDE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define KVTIDE_API __attribute__((visibility("default")))
#else
#define KVTIDE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// -- version ------------------------------------------------------------------

/// Version of this header: 10,000 times major, 100 times minor, patch.
#define KVTIDE_VERSION 100

/// Version of the library, as `KVTIDE_VERSION`. Cannot fail.
KVTIDE_API uint32_t kvtide_version(void);

/// The same as text, e.g. "0.1.0". Never null; valid for ever.
KVTIDE_API const char* kvtide_version_string(void);

// -- errors -------------------------------------------------------------------

/// How a call ended; a value of the enumeration below.
typedef int32_t kvtide_status;

/// The values never change. New ones may come.
enum {
  KVTIDE_OK = 0,
  /// An option is missing, out of range, or contradicts another one.
  KVTIDE_INVALID_OPTIONS = 1,
  /// An argument of a call is out of range, or a list names something twice.
  KVTIDE_INVALID_ARGUMENT = 2,
  /// The request id is not known: never added, or already forgotten.
  KVTIDE_UNKNOWN_REQUEST = 3,
  /// A request with this id is still tracked.
  KVTIDE_DUPLICATE_REQUEST = 4,
  /// A call came out of the order that the protocol asks for.
  KVTIDE_OUT_OF_ORDER = 5,
  /// The promise was used, declined or has expired.
  KVTIDE_UNKNOWN_PROMISE = 6,
  /// The machine or the device has not enough memory.
  KVTIDE_OUT_OF_MEMORY = 7,
  /// A rank has not registered its memory yet, or its process is gone.
  KVTIDE_RANK_UNAVAILABLE = 8,
  /// A copy failed on the device.
  KVTIDE_DEVICE_FAILURE = 9,
  /// A deadline passed.
  KVTIDE_TIMEOUT = 10,
  /// This build or this configuration cannot do what was asked.
  KVTIDE_UNSUPPORTED = 11,
  /// The runtime is stopping or has stopped.
  KVTIDE_SHUTTING_DOWN = 12,
  /// Nothing failed: a rank in another process than its scheduler goes on
  /// without the cache until the scheduler is back.
  KVTIDE_SCHEDULER_UNREACHABLE = 13,
  /// A fault of this library that got as far as its border.
  KVTIDE_INTERNAL = 255
};

/// The name of a status, e.g. "unknown_request", or "unknown status". Never
/// null; valid for ever.
KVTIDE_API const char* kvtide_status_name(kvtide_status status);

/// One sentence on the last call of this thread that failed, at most 1,023
/// bytes; empty if none has. Calls that succeed do not change it. Never null;
/// valid until the next call of this thread that fails, or the thread's end.
KVTIDE_API const char* kvtide_last_error(void);

// -- handles ------------------------------------------------------------------

/// Actors, devices and host pools. From `kvtide_start`.
typedef struct kvtide_runtime kvtide_runtime;

/// The side of a runtime that the owner of a GPU sees. From
/// `kvtide_local_rank`; belongs to the runtime.
typedef struct kvtide_rank kvtide_rank;

/// Answers and notices that have arrived. From `kvtide_poll`.
typedef struct kvtide_batch kvtide_batch;

/// Makes prefix hashes. From `kvtide_hasher_make`.
typedef struct kvtide_hasher kvtide_hasher;

// -- options ------------------------------------------------------------------

enum {
  KVTIDE_RULES_REFERENCE = 0,
  KVTIDE_RULES_REFERENCE_COMMITTED = 1,
  KVTIDE_RULES_SAFE = 2
};

enum { KVTIDE_POLICY_LRU = 0, KVTIDE_POLICY_ARC = 1 };

enum {
  KVTIDE_DEVICE_HOST = 0,
  KVTIDE_DEVICE_HOST_VIRTUAL = 1,
  KVTIDE_DEVICE_CUDA = 2
};

enum { KVTIDE_DELIVERY_DIRECT = 0, KVTIDE_DELIVERY_BY_ENGINE = 1 };

enum {
  KVTIDE_ORDER_CHECKS_OFF = 0,
  KVTIDE_ORDER_CHECKS_COUNT = 1,
  KVTIDE_ORDER_CHECKS_FATAL = 2
};

enum {
  KVTIDE_PATH_AUTOMATIC = 0,
  KVTIDE_PATH_BATCH = 1,
  KVTIDE_PATH_PLAIN = 2,
  KVTIDE_PATH_KERNEL = 3
};

enum { KVTIDE_FENCES_STREAM = 0, KVTIDE_FENCES_HOST = 1 };

enum {
  KVTIDE_HUGE_PAGES_OFF = 0,
  KVTIDE_HUGE_PAGES_IF_AVAILABLE = 1,
  KVTIDE_HUGE_PAGES_REQUIRED = 2
};

/// For `kvtide_cuda_options::kernel_below`.
#define KVTIDE_AS_MEASURED UINT64_MAX

/// As `kvtide::group_options`. Layers that share one block table.
typedef struct kvtide_group_options {
  size_t struct_size;
  /// Tokens per block, at least 1. Default 16.
  int32_t tokens_per_block;
  /// Tokens; zero means full attention.
  int32_t sliding_window_tokens;
  /// 1 for the layers of a draft model, else 0.
  uint32_t draft;
  uint32_t reserved;
} kvtide_group_options;

/// As `kvtide::cuda_options`, whose defaults it has.
typedef struct kvtide_cuda_options {
  size_t struct_size;
  /// KVTIDE_PATH_...
  int32_t path;
  /// Thread blocks of the kernel, 1 to 1,024.
  uint32_t kernel_blocks;
  /// Bytes, or KVTIDE_AS_MEASURED.
  uint64_t kernel_below;
  /// Bytes; zero: as measured.
  uint64_t slice_bytes;
  /// Bytes; zero: two slices.
  uint64_t bytes_in_flight;
  /// 1 to 16.
  uint32_t streams_per_direction;
  /// KVTIDE_FENCES_...
  int32_t fences;
  /// KVTIDE_HUGE_PAGES_...
  int32_t huge_pages;
  /// 1 or 0.
  uint32_t numa_binding;
  /// At most 256; zero: one per core and at most 8.
  uint32_t prefault_threads;
  /// 1 or 0.
  uint32_t allow_pageable;
  /// A path; empty: none.
  const char* calibration_file;
} kvtide_cuda_options;

/// As `kvtide::options`, whose defaults it has.
typedef struct kvtide_options {
  size_t struct_size;
  /// KV groups in order; none: one with the defaults.
  const kvtide_group_options* groups;
  size_t group_count;
  /// Part of every key.
  const char* model_fingerprint;
  /// Host pool per rank in bytes; zero turns offloading off.
  uint64_t host_bytes;
  /// Blocks per chunk, at least 1.
  int32_t blocks_per_chunk;
  /// Tokens per prefix hash, at least 1.
  int32_t tokens_per_hash;
  /// 1 to 64.
  uint32_t ranks;
  /// KVTIDE_POLICY_...
  int32_t policy;
  /// Lookups, at least 1.
  uint32_t store_threshold;
  /// 1 or 0.
  uint32_t offload_prompt_only;
  /// 1 or 0.
  uint32_t enable_prefix_caching;
  /// 1 or 0.
  uint32_t cache_events;
  /// KVTIDE_RULES_...
  int32_t rules;
  /// Lookups.
  uint32_t max_deferrals;
  /// Steps, at least 1.
  uint32_t promise_steps;
  /// Offers.
  uint32_t store_retries;
  /// Jobs, at least 1.
  uint32_t max_store_jobs;
  /// KVTIDE_DELIVERY_...
  int32_t delivery;
  /// KVTIDE_DEVICE_...
  int32_t device;
  /// KVTIDE_ORDER_CHECKS_...
  int32_t order_checks;
  /// 1 to 256.
  uint32_t actor_threads;
  uint32_t reserved;
  /// Milliseconds, at least 1.
  int64_t job_deadline_ms;
  /// Milliseconds.
  int64_t idle_delay_ms;
  /// Microseconds.
  int64_t copy_latency_us;
  /// Bytes per second; zero: no limit.
  uint64_t copy_bytes_per_second;
  /// Null: the defaults.
  const kvtide_cuda_options* cuda;
} kvtide_options;

/// Sets all but `struct_size`, which the caller has set, to the defaults. Safe
/// from any thread.
KVTIDE_API kvtide_status kvtide_options_init(kvtide_options* options);
KVTIDE_API kvtide_status
kvtide_group_options_init(kvtide_group_options* options);
KVTIDE_API kvtide_status kvtide_cuda_options_init(kvtide_cuda_options* options);

// -- start and end ------------------------------------------------------------

/// Starts a runtime. Blocks for milliseconds; with KVTIDE_DEVICE_CUDA for as
/// long as the driver needs to start. Safe from any thread.
/// @param runtime the caller's until `kvtide_destroy`
/// @returns KVTIDE_INVALID_OPTIONS, KVTIDE_OUT_OF_MEMORY if the host pools are
///          larger than the machine's memory, KVTIDE_UNSUPPORTED if there is no
///          GPU or this build has no CUDA
KVTIDE_API kvtide_status kvtide_start(const kvtide_options* options,
                                      kvtide_runtime** runtime);

/// Stops without waiting for jobs in flight: call `kvtide_shutdown` and wait
/// for its answer first for a clean end. Blocks until no copy is running.
/// Its ranks end with it; batches stay until they are freed. Null: no effect.
/// No call can see that a handle points at nothing any more: a wrapper has to
/// forget this one and those of the ranks before it calls this.
KVTIDE_API void kvtide_destroy(kvtide_runtime* runtime);

// -- requests -----------------------------------------------------------------

/// For `kvtide_add_request::cap`.
#define KVTIDE_NO_CAP INT64_MAX

/// As `kvtide::add_request`.
typedef struct kvtide_add_request {
  size_t struct_size;
  uint64_t request;
  /// Tokens, at most 2^40; the same holds for every number of tokens.
  int64_t prompt_tokens;
  /// Tokens whose ids are known; at least `prompt_tokens`.
  int64_t known_tokens;
  /// Store nothing beyond this many tokens. Default KVTIDE_NO_CAP.
  int64_t cap;
  /// 1: never load for this request, else 0.
  uint32_t no_read;
  /// 1: never store for this request, else 0.
  uint32_t no_store;
  /// 1: store nothing beyond the prompt, else 0.
  uint32_t prompt_only;
  int32_t priority;
  /// Seconds; zero means no limit.
  uint32_t time_to_live;
  uint32_t reserved;
  const char* tenant;
} kvtide_add_request;

/// As `kvtide_options_init`.
KVTIDE_API kvtide_status kvtide_add_request_init(kvtide_add_request* call);

/// Begins to track a request. Comes back as a failed call with
/// KVTIDE_DUPLICATE_REQUEST while one with this id is tracked.
KVTIDE_API kvtide_status kvtide_add(kvtide_runtime* runtime,
                                    const kvtide_add_request* call,
                                    uint64_t* ticket);

/// As `kvtide::extend_keys`. More prefix hashes of a request.
typedef struct kvtide_extend_keys {
  size_t struct_size;
  uint64_t request;
  /// Index of the first hash; must follow the last one sent.
  uint64_t first;
  /// `hash_count` hashes of `hash_bytes` bytes each, one behind the other.
  const void* hashes;
  /// 1 to 64.
  size_t hash_bytes;
  size_t hash_count;
  /// For events: ids of the tokens that `hashes` cover; may be null.
  const int32_t* token_ids;
  size_t token_id_count;
  /// For events: a hash that the first chunk follows; may be null.
  const void* parent;
  /// At most 64.
  size_t parent_bytes;
} kvtide_extend_keys;

KVTIDE_API kvtide_status kvtide_extend(kvtide_runtime* runtime,
                                       const kvtide_extend_keys* call,
                                       uint64_t* ticket);

/// As `kvtide::lookup_row`.
typedef struct kvtide_lookup_row {
  size_t struct_size;
  uint64_t request;
  /// Leading tokens that the device's own prefix cache has.
  int64_t local;
  int64_t known_tokens;
} kvtide_lookup_row;

/// Asks for many requests at once how many tokens the host can serve. Answered
/// by KVTIDE_EVENT_LOOKUP, in the order of the rows.
KVTIDE_API kvtide_status kvtide_lookup(kvtide_runtime* runtime,
                                       const kvtide_lookup_row* rows,
                                       size_t row_count, uint64_t* ticket);

/// Ends a promise without a load.
KVTIDE_API kvtide_status kvtide_decline(kvtide_runtime* runtime,
                                        uint64_t promise, uint64_t* ticket);

/// Blocks of one group. Zero is the id of a hole.
typedef struct kvtide_block_list {
  const uint32_t* ids;
  size_t count;
} kvtide_block_list;

/// One flag, 1 or 0, for each block of one group.
typedef struct kvtide_flag_list {
  const uint8_t* flags;
  size_t count;
} kvtide_flag_list;

/// As `kvtide::allocated`. The engine gave a looked-up request its blocks.
typedef struct kvtide_allocated {
  size_t struct_size;
  uint64_t request;
  /// Tokens of the lookup's answer to load; zero for none.
  int64_t external;
  /// The block table so far, one list per group.
  const kvtide_block_list* blocks;
  size_t block_list_count;
  /// 1 where a block already carries content that the device's prefix cache
  /// knows; one list per group.
  const kvtide_flag_list* hashed;
  size_t hashed_list_count;
} kvtide_allocated;

KVTIDE_API kvtide_status kvtide_allocate(kvtide_runtime* runtime,
                                         const kvtide_allocated* call,
                                         uint64_t* ticket);

enum {
  KVTIDE_FINISH_STOP = 0,
  KVTIDE_FINISH_LENGTH = 1,
  KVTIDE_FINISH_REPETITION = 2,
  KVTIDE_FINISH_ABORT = 3,
  KVTIDE_FINISH_ERROR = 4,
  KVTIDE_FINISH_IGNORED = 5
};

/// As `kvtide::finish_call`.
typedef struct kvtide_finish_call {
  size_t struct_size;
  uint64_t request;
  /// KVTIDE_FINISH_...
  int32_t reason;
  uint32_t reserved;
  /// Tokens.
  int64_t known;
  /// Tokens.
  int64_t computed;
} kvtide_finish_call;

/// Ends a request. Answered by KVTIDE_EVENT_FINISH.
KVTIDE_API kvtide_status kvtide_finish(kvtide_runtime* runtime,
                                       const kvtide_finish_call* call,
                                       uint64_t* ticket);

/// Rolls a request back to its first `tokens` tokens.
KVTIDE_API kvtide_status kvtide_truncate(kvtide_runtime* runtime,
                                         uint64_t request, int64_t tokens,
                                         uint64_t* ticket);

// -- steps --------------------------------------------------------------------

enum { KVTIDE_ROW_FRESH = 0, KVTIDE_ROW_RUNNING = 1, KVTIDE_ROW_RESUMED = 2 };

/// As `kvtide::step_row`. One scheduled request of a step.
typedef struct kvtide_step_row {
  size_t struct_size;
  uint64_t request;
  /// KVTIDE_ROW_...
  int32_t kind;
  uint32_t reserved;
  /// One list per group; no lists at all mean no new blocks.
  const kvtide_block_list* new_blocks;
  size_t new_block_list_count;
  /// Tokens whose KV was computed before this step.
  int64_t computed;
  /// Tokens that this step computes.
  int64_t scheduled;
  /// Tokens whose ids are known.
  int64_t known;
} kvtide_step_row;

/// As `kvtide::step_call`. One turn of the engine.
typedef struct kvtide_step_call {
  size_t struct_size;
  uint64_t step;
  /// In the engine's order.
  const kvtide_step_row* rows;
  size_t row_count;
  /// Request ids.
  const uint64_t* preempted;
  size_t preempted_count;
  /// Requests whose finish came since the last step, in the order in which
  /// their tails shall be planned.
  const kvtide_finish_call* finished;
  size_t finished_count;
} kvtide_step_call;

/// Answered by KVTIDE_EVENT_STEP_PLAN.
KVTIDE_API kvtide_status kvtide_step(kvtide_runtime* runtime,
                                     const kvtide_step_call* call,
                                     uint64_t* ticket);

/// As `kvtide::output_row`. Progress that became known between two steps.
typedef struct kvtide_output_row {
  size_t struct_size;
  uint64_t request;
  /// Tokens.
  int64_t known;
  /// Tokens.
  int64_t computed;
} kvtide_output_row;

KVTIDE_API kvtide_status kvtide_outputs(kvtide_runtime* runtime, uint64_t step,
                                        const kvtide_output_row* rows,
                                        size_t row_count, uint64_t* ticket);

// -- the whole cache ----------------------------------------------------------

/// Forgets all cached content. Answered by KVTIDE_EVENT_CALL_DONE.
KVTIDE_API kvtide_status kvtide_reset(kvtide_runtime* runtime,
                                      uint64_t* ticket);

/// Answered by KVTIDE_EVENT_CACHE_EVENTS; empty without
/// `kvtide_options::cache_events`.
KVTIDE_API kvtide_status kvtide_take_events(kvtide_runtime* runtime,
                                            uint64_t* ticket);

/// Answered by KVTIDE_EVENT_STATS.
KVTIDE_API kvtide_status kvtide_get_stats(kvtide_runtime* runtime,
                                          uint64_t* ticket);

/// Answered by KVTIDE_EVENT_EXPLAIN: what a lookup of a tracked request would
/// find now, and why no more. Changes nothing.
KVTIDE_API kvtide_status kvtide_explain(kvtide_runtime* runtime,
                                        uint64_t request, uint64_t* ticket);

/// The engine is about to give its GPU memory back; see
/// `kvtide::runtime::sleep`. Answered by KVTIDE_EVENT_CALL_DONE when no job is
/// in flight, or after `deadline_ms` milliseconds with the jobs that still are.
/// A deadline below zero counts as zero, one beyond a year as a year.
KVTIDE_API kvtide_status kvtide_sleep(kvtide_runtime* runtime,
                                      int64_t deadline_ms, uint64_t* ticket);

/// Ends `kvtide_sleep`. Answered by KVTIDE_EVENT_CALL_DONE.
KVTIDE_API kvtide_status kvtide_wake(kvtide_runtime* runtime, uint64_t* ticket);

/// Answered by KVTIDE_EVENT_CALL_DONE when no job is in flight, or after
/// `deadline_ms` milliseconds with the jobs that still are. A deadline below
/// zero counts as zero, one beyond a year as a year. Calls to add and to shut
/// down that come later fail with KVTIDE_SHUTTING_DOWN.
KVTIDE_API kvtide_status kvtide_shutdown(kvtide_runtime* runtime,
                                         int64_t deadline_ms, uint64_t* ticket);

/// Only with KVTIDE_DEVICE_HOST_VIRTUAL: moves simulated time to `now_ns`,
/// nanoseconds since the start. Answered by KVTIDE_EVENT_CALL_DONE.
KVTIDE_API kvtide_status kvtide_advance(kvtide_runtime* runtime, int64_t now_ns,
                                        uint64_t* ticket);

// -- what comes back ----------------------------------------------------------

/// What happened, and which member of `kvtide_event::as` says more. Kinds below
/// 100 come from `kvtide_poll`, the others from `kvtide_rank_poll`. A later
/// library may have more kinds: skip those you do not know.
enum {
  /// `lookup`
  KVTIDE_EVENT_LOOKUP = 1,
  /// `step_plan`
  KVTIDE_EVENT_STEP_PLAN = 2,
  /// `finish`
  KVTIDE_EVENT_FINISH = 3,
  /// `stats`
  KVTIDE_EVENT_STATS = 4,
  /// `cache_events`
  KVTIDE_EVENT_CACHE_EVENTS = 5,
  /// `done`
  KVTIDE_EVENT_CALL_DONE = 6,
  /// `failed`: a call that had no effect.
  KVTIDE_EVENT_CALL_FAILED = 7,
  /// `load`: its blocks may be read by compute from now on.
  KVTIDE_EVENT_LOAD_DONE = 8,
  /// `load`: the request recomputes from `first_bad_token` on.
  KVTIDE_EVENT_LOAD_FAILED = 9,
  /// `released`: blocks that were held are free now.
  KVTIDE_EVENT_BLOCKS_RELEASED = 10,
  /// `life`: a rank died.
  KVTIDE_EVENT_RANK_LOST = 11,
  /// `life`: this life of a rank takes part from the next step on.
  KVTIDE_EVENT_RANK_BACK = 12,
  /// `overload`: new stores are refused for a while.
  KVTIDE_EVENT_OVERLOAD = 13,
  /// No member: the host pool starts again, empty.
  KVTIDE_EVENT_CACHE_LOST = 14,
  /// `failed`: destroy the runtime and start another one.
  KVTIDE_EVENT_RUNTIME_LOST = 15,
  /// `explain`
  KVTIDE_EVENT_EXPLAIN = 16,

  /// `registered`
  KVTIDE_EVENT_KV_REGISTERED = 101,
  /// No member: no copy can touch the memory any more.
  KVTIDE_EVENT_KV_UNREGISTERED = 102,
  /// `ready`
  KVTIDE_EVENT_STEP_READY = 103,
  /// `failed`: a call of the rank side that had no effect, or with
  /// KVTIDE_RANK_UNAVAILABLE the end of the rank.
  KVTIDE_EVENT_RANK_FAILED = 104,
  /// `rank_stats`
  KVTIDE_EVENT_RANK_STATS = 105
};

/// Job, request or other ids.
typedef struct kvtide_id_list {
  const uint64_t* ids;
  size_t count;
} kvtide_id_list;

/// As `kvtide::chunk_key`.
typedef struct kvtide_chunk_key {
  const uint8_t* hash;
  size_t hash_bytes;
  uint64_t model;
  uint32_t group;
  uint32_t reserved;
} kvtide_chunk_key;

/// Answer for one request of a lookup.
typedef struct kvtide_lookup_hit {
  uint64_t request;
  /// Tokens beyond `local` that can be loaded.
  int64_t tokens;
  /// What is held until the load; zero if nothing is.
  uint64_t promise;
  /// 1: ask again in a later step; `tokens` has no meaning then. Else 0.
  uint32_t ask_again;
  uint32_t reserved;
} kvtide_lookup_hit;

typedef struct kvtide_lookup_answer {
  /// In the order of the call's rows.
  const kvtide_lookup_hit* hits;
  size_t hit_count;
} kvtide_lookup_answer;

enum { KVTIDE_JOB_STORE = 0, KVTIDE_JOB_LOAD = 1 };

/// One chunk of a job.
typedef struct kvtide_job_row {
  kvtide_chunk_key key;
  /// Where the chunk lies in each rank's host pool.
  uint32_t slot;
  /// Index of the chunk among the request's chunks of this group.
  uint32_t chunk;
  /// Zero: this part of the chunk is not copied.
  kvtide_block_list blocks;
} kvtide_job_row;

typedef struct kvtide_job {
  uint64_t id;
  uint64_t request;
  /// KVTIDE_JOB_...
  int32_t kind;
  uint32_t reserved;
  /// Groups in configured order, chunks ascending inside a group.
  const kvtide_job_row* rows;
  size_t row_count;
} kvtide_job;

typedef struct kvtide_step_plan {
  uint64_t step;
  /// Ascending by id.
  const kvtide_job* loads;
  size_t load_count;
  /// Ascending by id.
  const kvtide_job* stores;
  size_t store_count;
  /// Store jobs that each rank completes before this step's compute writes.
  kvtide_id_list flush;
  /// With KVTIDE_DELIVERY_BY_ENGINE: for each rank's `kvtide_rank_begin_step`.
  const void* bytes;
  size_t byte_count;
  /// 1 if some job is in flight, else 0.
  uint32_t pending_work;
  uint32_t reserved;
} kvtide_step_plan;

typedef struct kvtide_finish_answer {
  uint64_t request;
  /// Blocks that a load may still write; free them when they are released. All
  /// other blocks of the request are free now.
  kvtide_block_list held;
} kvtide_finish_answer;

/// As `kvtide::stats`. Counters since the start, and what is there now.
typedef struct kvtide_stats {
  /// Bytes that this library has filled.
  size_t struct_size;
  uint64_t tracked_requests;
  uint64_t jobs_in_flight;
  uint64_t host_slots;
  uint64_t free_slots;
  uint64_t quarantined_slots;
  uint64_t pinned_slots;
  uint64_t held_slots;
  uint64_t writing_slots;
  uint64_t watched_blocks;
  uint64_t sliding_entries;
  uint64_t steps;
  uint64_t lookups;
  uint64_t deferrals;
  uint64_t hit_tokens;
  uint64_t store_jobs;
  uint64_t load_jobs;
  uint64_t failed_jobs;
  uint64_t stored_chunks;
  uint64_t loaded_chunks;
  uint64_t evicted_chunks;
  uint64_t refused_stores;
  uint64_t flushed_jobs;
  uint64_t resets;
  uint64_t order_errors;
  /// Index 0 counts wrong calls, index n breaches of rule Sn.
  uint64_t order_errors_by_rule[14];
  uint64_t lost_requests;
  uint64_t lost_caches;
  uint64_t late_messages;
} kvtide_stats;

/// As `kvtide::chunk_state`.
enum {
  KVTIDE_CHUNK_ABSENT = 0,
  KVTIDE_CHUNK_EVICTED = 1,
  KVTIDE_CHUNK_WRITING = 2,
  KVTIDE_CHUNK_LOADING = 3,
  KVTIDE_CHUNK_PARTIAL = 4,
  KVTIDE_CHUNK_READY = 5
};

/// As `kvtide::miss_reason`.
enum {
  KVTIDE_MISS_NONE = 0,
  KVTIDE_MISS_OFFLOADING_OFF = 1,
  KVTIDE_MISS_ASLEEP = 2,
  KVTIDE_MISS_OWN_JOBS = 3,
  KVTIDE_MISS_REQUEST_LOST = 4,
  KVTIDE_MISS_NO_READ = 5,
  KVTIDE_MISS_RANK_AWAY = 6,
  KVTIDE_MISS_CACHE_LOST = 7,
  KVTIDE_MISS_NO_KEYS = 8,
  KVTIDE_MISS_LAST_TOKEN = 9,
  KVTIDE_MISS_ABSENT = 10,
  KVTIDE_MISS_EVICTED = 11,
  KVTIDE_MISS_BELOW_THRESHOLD = 12,
  KVTIDE_MISS_WRITING = 13,
  KVTIDE_MISS_LOADING = 14,
  KVTIDE_MISS_WINDOW_HOLE = 15,
  KVTIDE_MISS_DRAFT = 16
};

/// E.g. "ready", or "unknown state". Never null; valid for ever.
KVTIDE_API const char* kvtide_chunk_state_name(int32_t state);

/// E.g. "below_threshold", or "unknown reason". Never null; valid for ever.
KVTIDE_API const char* kvtide_miss_reason_name(int32_t reason);

/// KVTIDE_CHUNK_..., one for each chunk of one group that has a key.
typedef struct kvtide_state_list {
  const uint8_t* states;
  size_t count;
} kvtide_state_list;

/// As `kvtide::explain_answer`. Counts of tokens, where nothing else is said.
typedef struct kvtide_explain_answer {
  /// Bytes that this library has filled.
  size_t struct_size;
  uint64_t request;
  int64_t prompt_tokens;
  int64_t known_tokens;
  int64_t local;
  int64_t hashed_tokens;
  /// Behind `local`.
  int64_t tokens;
  /// 1: it would be told to ask again, else 0.
  uint32_t ask_again;
  /// KVTIDE_MISS_...
  int32_t reason;
  /// The chunk that `reason` is about, if it is about one.
  uint64_t chunk;
  uint32_t group;
  uint32_t reserved;
  /// One sentence for a person. Never null.
  const char* text;
  /// One list per group.
  const kvtide_state_list* chunks;
  size_t chunk_list_count;
} kvtide_explain_answer;

/// One chunk that was stored.
typedef struct kvtide_stored_chunk {
  kvtide_chunk_key key;
  /// Null for the first chunk, or where the engine did not say.
  const kvtide_chunk_key* parent;
  /// Ids of the tokens of this chunk, if the engine passed them.
  const int32_t* token_ids;
  size_t token_id_count;
  /// Tokens per chunk.
  int64_t tokens;
} kvtide_stored_chunk;

enum { KVTIDE_CACHE_STORED = 0, KVTIDE_CACHE_REMOVED = 1 };
enum { KVTIDE_MEDIUM_HOST = 0 };

/// As `kvtide::cache_event`.
typedef struct kvtide_cache_event {
  /// KVTIDE_CACHE_...
  int32_t kind;
  /// KVTIDE_MEDIUM_...
  int32_t medium;
  const kvtide_stored_chunk* stored;
  size_t stored_count;
  /// In the order of eviction.
  const kvtide_chunk_key* removed;
  size_t removed_count;
} kvtide_cache_event;

typedef struct kvtide_cache_events {
  const kvtide_cache_event* events;
  size_t count;
} kvtide_cache_events;

typedef struct kvtide_call_done {
  /// Jobs that are still in flight: after `kvtide_shutdown` and `kvtide_sleep`,
  /// whose deadline has passed or which `kvtide_wake` ended, and after
  /// `kvtide_reset`, which waits for none. Copies of these may still touch KV
  /// memory (G8).
  kvtide_id_list in_flight;
} kvtide_call_done;

typedef struct kvtide_failure {
  /// Zero unless a call of one request failed.
  uint64_t request;
  /// One sentence that says what is wrong and what to do. Never null.
  const char* text;
  kvtide_status code;
  uint32_t reserved;
} kvtide_failure;

typedef struct kvtide_load_end {
  uint64_t request;
  uint64_t job;
  /// If failed: where to recompute from.
  int64_t first_bad_token;
  /// If failed: the load's blocks.
  kvtide_block_list blocks;
  /// If failed, 1: a copy may still write `blocks`. Recompute into new ones and
  /// free these when they are released.
  uint32_t use_new_blocks;
  uint32_t reserved;
} kvtide_load_end;

typedef struct kvtide_blocks_released {
  uint64_t request;
  kvtide_block_list blocks;
} kvtide_blocks_released;

typedef struct kvtide_rank_life {
  /// Tells two lives of a rank apart.
  uint32_t incarnation;
  /// If back, 1: it is the life that was lost, only the connection was. Zero in
  /// versions before ranks could live in other processes.
  uint32_t same_life;
} kvtide_rank_life;

typedef struct kvtide_overload {
  uint64_t jobs_in_flight;
} kvtide_overload;

typedef struct kvtide_kv_registered {
  /// Slots of this rank's host pool.
  uint64_t slots;
  uint64_t slot_bytes;
  /// KVTIDE_OK, or why the registration was refused.
  kvtide_status code;
  uint32_t reserved;
  /// If refused: one sentence. Never null.
  const char* text;
  /// What the device and the pool got, a sentence each.
  const char* const* notes;
  size_t note_count;
} kvtide_kv_registered;

enum { KVTIDE_FENCE_NONE = 0, KVTIDE_FENCE_EVENT = 1 };

/// Compute of the step may be enqueued, behind the fence; see `kvtide::fence`.
typedef struct kvtide_step_ready {
  uint64_t step;
  /// With KVTIDE_FENCE_EVENT: a `cudaEvent_t`, or with
  /// KVTIDE_DEVICE_HOST_VIRTUAL a moment in nanoseconds.
  uint64_t fence_handle;
  /// KVTIDE_FENCE_...
  int32_t fence_kind;
  uint32_t reserved;
} kvtide_step_ready;

/// As `kvtide::rank_stats`.
typedef struct kvtide_rank_stats {
  /// Bytes that this library has filled.
  size_t struct_size;
  uint64_t order_errors;
  uint64_t order_errors_by_rule[14];
  uint64_t late_jobs;
  uint64_t failed_jobs;
  uint64_t copied_bytes;
  int64_t copy_time_ns;
} kvtide_rank_stats;

/// An answer or a notice. Read it in place: a later library's may be longer.
/// Structs in lists below it never change within one SONAME.
typedef struct kvtide_event {
  /// Bytes that this library has filled.
  size_t struct_size;
  /// KVTIDE_EVENT_...
  int32_t kind;
  /// Of the rank side, and where a rank is lost or back: which one.
  uint32_t rank;
  /// Of the call that is answered; zero for notices.
  uint64_t ticket;
  union {
    kvtide_lookup_answer lookup;
    kvtide_step_plan step_plan;
    kvtide_finish_answer finish;
    const kvtide_stats* stats;
    kvtide_cache_events cache_events;
    kvtide_call_done done;
    kvtide_failure failed;
    kvtide_load_end load;
    kvtide_blocks_released released;
    kvtide_rank_life life;
    kvtide_overload overload;
    kvtide_kv_registered registered;
    kvtide_step_ready ready;
    const kvtide_rank_stats* rank_stats;
    const kvtide_explain_answer* explain;
  } as;
} kvtide_event;

/// Takes all answers and notices that have arrived.
/// @param batch the caller's until `kvtide_batch_free`; null if nothing has
///              arrived
/// @returns KVTIDE_OUT_OF_MEMORY: nothing is lost, the next call has it; see
///          `kvtide_event_fd`; KVTIDE_OUT_OF_ORDER if another thread polls or
///          awaits here
KVTIDE_API kvtide_status kvtide_poll(kvtide_runtime* runtime,
                                     kvtide_batch** batch);

/// For tools, tests and engines with a thread to spare: blocks until the answer
/// to a call is there, `timeout_ms` milliseconds at most, and takes it alone.
/// What arrives meanwhile stays for `kvtide_poll`, in its order. Other threads
/// may make calls meanwhile, also the one whose answer is awaited.
/// @param ticket of a call that has an answer
/// @param answer a batch with one event, the caller's until
///               `kvtide_batch_free`
/// @returns what the call failed with; KVTIDE_TIMEOUT, after which it may be
///          awaited again; KVTIDE_SHUTTING_DOWN, or what else the reason is, if
///          the runtime is lost; KVTIDE_OUT_OF_ORDER, at once, if another
///          thread polls or awaits here
KVTIDE_API kvtide_status kvtide_await(kvtide_runtime* runtime, uint64_t ticket,
                                      int64_t timeout_ms,
                                      kvtide_batch** answer);

/// A file descriptor that is readable while something has arrived that was not
/// looked at. The runtime's: wait for it, but do not read, write or close it.
/// It knows nothing of what `kvtide_await` has set aside, or a failed poll:
/// poll once behind these, before waiting for it.
/// @returns -1 if `runtime` is null
KVTIDE_API int kvtide_event_fd(const kvtide_runtime* runtime);

/// Blocks until there is something to poll, `timeout_ms` milliseconds at most;
/// zero or less only looks.
/// @returns KVTIDE_TIMEOUT
KVTIDE_API kvtide_status kvtide_wait(const kvtide_runtime* runtime,
                                     int64_t timeout_ms);

/// Number of events; zero if `batch` is null. Cannot fail.
KVTIDE_API size_t kvtide_batch_size(const kvtide_batch* batch);

/// One event, in order of arrival. It and all that it points to is valid until
/// the batch is freed. Costs nothing.
/// @returns null if `index` is not below `kvtide_batch_size`
KVTIDE_API const kvtide_event* kvtide_batch_at(const kvtide_batch* batch,
                                               size_t index);

/// Null: no effect.
KVTIDE_API void kvtide_batch_free(kvtide_batch* batch);

// -- the rank side ------------------------------------------------------------

/// As `kvtide::runtime::restart_rank`: starts a rank again that has died.
/// Takes effect at once.
/// @returns KVTIDE_OUT_OF_ORDER if it lives, KVTIDE_SHUTTING_DOWN,
///          KVTIDE_DEVICE_FAILURE if its CUDA context is gone
KVTIDE_API kvtide_status kvtide_restart_rank(kvtide_runtime* runtime,
                                             uint32_t rank);

/// The rank side of a rank in this process.
/// @param out valid while the runtime is
/// @returns KVTIDE_INVALID_ARGUMENT if there is no such rank
KVTIDE_API kvtide_status kvtide_local_rank(kvtide_runtime* runtime,
                                           uint32_t rank, kvtide_rank** out);

enum {
  KVTIDE_MEMORY_HOST = 0,
  KVTIDE_MEMORY_DEVICE = 1,
  KVTIDE_MEMORY_DEVICE_MAPPED = 2
};

/// As `kvtide::kv_tensor`. One allocation that holds blocks at equal distance.
typedef struct kvtide_kv_tensor {
  size_t struct_size;
  void* base;
  uint64_t bytes;
  /// Distance between two blocks, in bytes.
  uint64_t block_stride;
  /// Bytes of one block that belong to KV.
  uint64_t page_bytes;
  /// Number of blocks.
  uint32_t blocks;
  /// KVTIDE_MEMORY_...
  int32_t kind;
} kvtide_kv_tensor;

/// As `kvtide::kv_reference`. A piece of each block of one layer.
typedef struct kvtide_kv_reference {
  size_t struct_size;
  uint32_t group;
  uint32_t layer;
  /// Index in `kvtide_kv_memory::tensors`.
  uint32_t tensor;
  uint32_t reserved;
  /// Bytes.
  uint64_t offset;
  /// Bytes per block, at least 1.
  uint64_t bytes;
} kvtide_kv_reference;

/// As `kvtide::kv_memory`. It must stay valid and mapped until it is
/// unregistered.
typedef struct kvtide_kv_memory {
  size_t struct_size;
  uint32_t rank;
  /// Device ordinal; ignored by the host devices.
  int32_t device;
  const kvtide_kv_tensor* tensors;
  size_t tensor_count;
  /// Their order is the order of the bytes inside a slot.
  const kvtide_kv_reference* references;
  size_t reference_count;
  /// `cudaStream_t`s as numbers: all on which the rank computes.
  const uint64_t* streams;
  size_t stream_count;
  uint32_t writer;
  /// Default 1.
  uint32_t writers;
  /// Must equal `kvtide_options::model_fingerprint`.
  const char* model_fingerprint;
} kvtide_kv_memory;

/// As `kvtide_options_init`.
KVTIDE_API kvtide_status kvtide_kv_memory_init(kvtide_kv_memory* memory);

/// Answered by KVTIDE_EVENT_KV_REGISTERED.
KVTIDE_API kvtide_status
kvtide_rank_register_kv(kvtide_rank* rank, const kvtide_kv_memory* memory);

/// Answered by KVTIDE_EVENT_KV_UNREGISTERED once no copy can touch the memory.
KVTIDE_API kvtide_status kvtide_rank_unregister_kv(kvtide_rank* rank);

/// Asks for KVTIDE_EVENT_STEP_READY of a step. With KVTIDE_DELIVERY_DIRECT it
/// may come before this call and says which step it is of: keep it until then.
/// @param plan with KVTIDE_DELIVERY_BY_ENGINE `kvtide_step_plan::bytes` of that
///             step, else null
KVTIDE_API kvtide_status kvtide_rank_begin_step(kvtide_rank* rank,
                                                uint64_t step, const void* plan,
                                                size_t plan_bytes);

/// Says that compute of the step is enqueued.
/// @param events as the events of `kvtide::rank::end_step`; may be null
KVTIDE_API kvtide_status kvtide_rank_end_step(kvtide_rank* rank, uint64_t step,
                                              const uint64_t* events,
                                              size_t event_count);

/// Answered by KVTIDE_EVENT_RANK_STATS.
KVTIDE_API kvtide_status kvtide_rank_get_stats(kvtide_rank* rank);

/// Only with KVTIDE_DEVICE_HOST: a handle for `kvtide_rank_end_step`, to be
/// given to `kvtide_rank_complete_event` exactly once.
/// @returns KVTIDE_OUT_OF_MEMORY if 1,024 events are pending,
///          KVTIDE_UNSUPPORTED with KVTIDE_DEVICE_CUDA
KVTIDE_API kvtide_status kvtide_rank_make_event(kvtide_rank* rank,
                                                uint64_t* event);

/// Without effect if nobody made this handle. Safe from any thread.
KVTIDE_API kvtide_status kvtide_rank_complete_event(kvtide_rank* rank,
                                                    uint64_t event);

/// Only with KVTIDE_DEVICE_CUDA: a handle for `kvtide_rank_end_step` that
/// stands for everything enqueued in a stream so far.
/// @param stream a `cudaStream_t` of the rank's GPU, as a number
/// @returns KVTIDE_UNSUPPORTED with other devices, KVTIDE_OUT_OF_ORDER without
///          memory or while the stream is being captured, KVTIDE_OUT_OF_MEMORY
///          if 1,024 events are pending, KVTIDE_DEVICE_FAILURE
KVTIDE_API kvtide_status kvtide_rank_record_event(kvtide_rank* rank,
                                                  uint64_t stream,
                                                  uint64_t* event);

/// As `kvtide_poll`, `kvtide_event_fd` and `kvtide_wait`.
KVTIDE_API kvtide_status kvtide_rank_poll(kvtide_rank* rank,
                                          kvtide_batch** batch);

/// As `kvtide_await`, for a rank, whose events have no tickets: takes the first
/// event of one kind. One that says that a call of the rank failed, or that
/// registration was refused, is taken as well and ends the wait, so await one
/// thing after the other.
/// @param kind KVTIDE_EVENT_..., of the rank side
/// @returns what the call failed with; KVTIDE_TIMEOUT; KVTIDE_OUT_OF_ORDER as
///          `kvtide_await`
KVTIDE_API kvtide_status kvtide_rank_await(kvtide_rank* rank, int32_t kind,
                                           int64_t timeout_ms,
                                           kvtide_batch** event);
KVTIDE_API int kvtide_rank_event_fd(const kvtide_rank* rank);
KVTIDE_API kvtide_status kvtide_rank_wait(const kvtide_rank* rank,
                                          int64_t timeout_ms);

// -- prefix hashes ------------------------------------------------------------

/// Bytes of each hash that a hasher makes.
#define KVTIDE_HASH_BYTES 16

/// Makes a hasher of one request's tokens; see `kvtide::prefix_hasher`. One
/// thread at a time may use it.
/// @param tokens_per_hash as `kvtide_options::tokens_per_hash`, at least 1
/// @param salt `salt_bytes` bytes: whatever else the KV depends on
/// @param hasher the caller's until `kvtide_hasher_destroy`
KVTIDE_API kvtide_status kvtide_hasher_make(int32_t tokens_per_hash,
                                            const void* salt, size_t salt_bytes,
                                            kvtide_hasher** hasher);

/// Takes more tokens and gives the hashes that became complete, for
/// `kvtide_extend_keys`: one behind the other, KVTIDE_HASH_BYTES each, valid
/// until the next call with this hasher. After KVTIDE_OUT_OF_MEMORY it can only
/// be destroyed.
KVTIDE_API kvtide_status kvtide_hasher_append(kvtide_hasher* hasher,
                                              const int32_t* tokens,
                                              size_t token_count,
                                              const void** hashes,
                                              size_t* hash_count);

/// Hashes made so far; zero if `hasher` is null. Cannot fail.
KVTIDE_API uint64_t kvtide_hasher_made(const kvtide_hasher* hasher);

/// Null: no effect.
KVTIDE_API void kvtide_hasher_destroy(kvtide_hasher* hasher);

#ifdef __cplusplus
}
#endif

#endif
