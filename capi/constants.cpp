// SPDX-License-Identifier: Apache-2.0

/// @file
/// The constants of C are the numbers of C++, which this file makes sure of: it
/// has no code.

#include "kvtide/kvtide.h"
#include "kvtide/runtime.hpp"

namespace {

using namespace kvtide;

template <class Enum>
constexpr bool same(Enum cpp, int c) noexcept {
  return static_cast<int>(cpp) == c;
}

static_assert(same(ec::none, KVTIDE_OK));
static_assert(same(ec::invalid_options, KVTIDE_INVALID_OPTIONS));
static_assert(same(ec::invalid_argument, KVTIDE_INVALID_ARGUMENT));
static_assert(same(ec::unknown_request, KVTIDE_UNKNOWN_REQUEST));
static_assert(same(ec::duplicate_request, KVTIDE_DUPLICATE_REQUEST));
static_assert(same(ec::out_of_order, KVTIDE_OUT_OF_ORDER));
static_assert(same(ec::unknown_promise, KVTIDE_UNKNOWN_PROMISE));
static_assert(same(ec::out_of_memory, KVTIDE_OUT_OF_MEMORY));
static_assert(same(ec::rank_unavailable, KVTIDE_RANK_UNAVAILABLE));
static_assert(same(ec::device_failure, KVTIDE_DEVICE_FAILURE));
static_assert(same(ec::timeout, KVTIDE_TIMEOUT));
static_assert(same(ec::unsupported, KVTIDE_UNSUPPORTED));
static_assert(same(ec::shutting_down, KVTIDE_SHUTTING_DOWN));
static_assert(same(ec::scheduler_unreachable, KVTIDE_SCHEDULER_UNREACHABLE));

static_assert(same(rule_set::reference, KVTIDE_RULES_REFERENCE));
static_assert(same(rule_set::reference_committed,
                   KVTIDE_RULES_REFERENCE_COMMITTED));
static_assert(same(rule_set::safe, KVTIDE_RULES_SAFE));

static_assert(same(eviction_policy::lru, KVTIDE_POLICY_LRU));
static_assert(same(eviction_policy::arc, KVTIDE_POLICY_ARC));

static_assert(same(device_kind::host, KVTIDE_DEVICE_HOST));
static_assert(same(device_kind::host_virtual, KVTIDE_DEVICE_HOST_VIRTUAL));
static_assert(same(device_kind::cuda, KVTIDE_DEVICE_CUDA));

static_assert(same(plan_delivery::direct, KVTIDE_DELIVERY_DIRECT));
static_assert(same(plan_delivery::by_engine, KVTIDE_DELIVERY_BY_ENGINE));

static_assert(same(order_checks::off, KVTIDE_ORDER_CHECKS_OFF));
static_assert(same(order_checks::count, KVTIDE_ORDER_CHECKS_COUNT));
static_assert(same(order_checks::fatal, KVTIDE_ORDER_CHECKS_FATAL));

static_assert(same(copy_path::automatic, KVTIDE_PATH_AUTOMATIC));
static_assert(same(copy_path::batch, KVTIDE_PATH_BATCH));
static_assert(same(copy_path::plain, KVTIDE_PATH_PLAIN));
static_assert(same(copy_path::kernel, KVTIDE_PATH_KERNEL));

static_assert(same(fence_wait::stream, KVTIDE_FENCES_STREAM));
static_assert(same(fence_wait::host, KVTIDE_FENCES_HOST));

static_assert(same(huge_page_use::off, KVTIDE_HUGE_PAGES_OFF));
static_assert(same(huge_page_use::if_available,
                   KVTIDE_HUGE_PAGES_IF_AVAILABLE));
static_assert(same(huge_page_use::required, KVTIDE_HUGE_PAGES_REQUIRED));

static_assert(same(finish_reason::stop, KVTIDE_FINISH_STOP));
static_assert(same(finish_reason::length, KVTIDE_FINISH_LENGTH));
static_assert(same(finish_reason::repetition, KVTIDE_FINISH_REPETITION));
static_assert(same(finish_reason::abort, KVTIDE_FINISH_ABORT));
static_assert(same(finish_reason::error, KVTIDE_FINISH_ERROR));
static_assert(same(finish_reason::ignored, KVTIDE_FINISH_IGNORED));

static_assert(same(row_kind::fresh, KVTIDE_ROW_FRESH));
static_assert(same(row_kind::running, KVTIDE_ROW_RUNNING));
static_assert(same(row_kind::resumed, KVTIDE_ROW_RESUMED));

static_assert(same(job_kind::store, KVTIDE_JOB_STORE));
static_assert(same(job_kind::load, KVTIDE_JOB_LOAD));

static_assert(same(cache_event::kind_t::stored, KVTIDE_CACHE_STORED));
static_assert(same(cache_event::kind_t::removed, KVTIDE_CACHE_REMOVED));
static_assert(same(cache_medium::host, KVTIDE_MEDIUM_HOST));

static_assert(same(chunk_state::absent, KVTIDE_CHUNK_ABSENT));
static_assert(same(chunk_state::evicted, KVTIDE_CHUNK_EVICTED));
static_assert(same(chunk_state::writing, KVTIDE_CHUNK_WRITING));
static_assert(same(chunk_state::loading, KVTIDE_CHUNK_LOADING));
static_assert(same(chunk_state::partial, KVTIDE_CHUNK_PARTIAL));
static_assert(same(chunk_state::ready, KVTIDE_CHUNK_READY));

static_assert(same(miss_reason::none, KVTIDE_MISS_NONE));
static_assert(same(miss_reason::offloading_off, KVTIDE_MISS_OFFLOADING_OFF));
static_assert(same(miss_reason::asleep, KVTIDE_MISS_ASLEEP));
static_assert(same(miss_reason::own_jobs, KVTIDE_MISS_OWN_JOBS));
static_assert(same(miss_reason::request_lost, KVTIDE_MISS_REQUEST_LOST));
static_assert(same(miss_reason::no_read, KVTIDE_MISS_NO_READ));
static_assert(same(miss_reason::rank_away, KVTIDE_MISS_RANK_AWAY));
static_assert(same(miss_reason::cache_lost, KVTIDE_MISS_CACHE_LOST));
static_assert(same(miss_reason::no_keys, KVTIDE_MISS_NO_KEYS));
static_assert(same(miss_reason::last_token, KVTIDE_MISS_LAST_TOKEN));
static_assert(same(miss_reason::absent, KVTIDE_MISS_ABSENT));
static_assert(same(miss_reason::evicted, KVTIDE_MISS_EVICTED));
static_assert(same(miss_reason::below_threshold, KVTIDE_MISS_BELOW_THRESHOLD));
static_assert(same(miss_reason::writing, KVTIDE_MISS_WRITING));
static_assert(same(miss_reason::loading, KVTIDE_MISS_LOADING));
static_assert(same(miss_reason::window_hole, KVTIDE_MISS_WINDOW_HOLE));
static_assert(same(miss_reason::draft, KVTIDE_MISS_DRAFT));

static_assert(same(fence::kind_t::none, KVTIDE_FENCE_NONE));
static_assert(same(fence::kind_t::event, KVTIDE_FENCE_EVENT));

static_assert(same(memory_kind::host, KVTIDE_MEMORY_HOST));
static_assert(same(memory_kind::device, KVTIDE_MEMORY_DEVICE));
static_assert(same(memory_kind::device_mapped, KVTIDE_MEMORY_DEVICE_MAPPED));

static_assert(no_cap == KVTIDE_NO_CAP);

} // namespace
