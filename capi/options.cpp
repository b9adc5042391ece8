// SPDX-License-Identifier: Apache-2.0

/// @file
/// Options there and back: the defaults are those of C++, read from there.

#include "capi/options.hpp"

#include "capi/arguments.hpp"

#include <chrono>
#include <utility>

namespace kvtide::capi {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto group_name = "kvtide_group_options";
constexpr auto cuda_name = "kvtide_cuda_options";
constexpr auto options_name = "kvtide_options";

template <class Enum>
constexpr std::int32_t number(Enum value) noexcept {
  return static_cast<std::int32_t>(value);
}

kvtide_group_options group_defaults() {
  const auto from = group_options{};
  auto out = kvtide_group_options{};
  out.struct_size = sizeof(out);
  out.tokens_per_block = from.tokens_per_block;
  out.sliding_window_tokens = from.sliding_window_tokens;
  out.draft = from.draft;
  return out;
}

/// The default of `calibration_file` is none.
kvtide_cuda_options cuda_defaults() {
  const auto from = cuda_options{};
  auto out = kvtide_cuda_options{};
  out.struct_size = sizeof(out);
  out.path = number(from.path);
  out.kernel_blocks = from.kernel_blocks;
  out.kernel_below = from.kernel_below.value_or(KVTIDE_AS_MEASURED);
  out.slice_bytes = from.slice_bytes;
  out.bytes_in_flight = from.bytes_in_flight;
  out.streams_per_direction = from.streams_per_direction;
  out.fences = number(from.fences);
  out.huge_pages = number(from.huge_pages);
  out.numa_binding = from.numa_binding;
  out.prefault_threads = from.prefault_threads;
  out.allow_pageable = from.allow_pageable;
  return out;
}

/// Pointers stay null: no text, one group, and a GPU's options with defaults of
/// their own.
kvtide_options defaults() {
  const auto from = options{};
  auto out = kvtide_options{};
  out.struct_size = sizeof(out);
  out.host_bytes = from.host_bytes;
  out.blocks_per_chunk = from.blocks_per_chunk;
  out.tokens_per_hash = from.tokens_per_hash;
  out.ranks = from.ranks;
  out.policy = number(from.policy);
  out.store_threshold = from.store_threshold;
  out.offload_prompt_only = from.offload_prompt_only;
  out.enable_prefix_caching = from.enable_prefix_caching;
  out.cache_events = from.cache_events;
  out.rules = number(from.rules);
  out.max_deferrals = from.max_deferrals;
  out.promise_steps = from.promise_steps;
  out.store_retries = from.store_retries;
  out.max_store_jobs = from.max_store_jobs;
  out.delivery = number(from.delivery);
  out.device = number(from.device);
  out.order_checks = number(from.order_checks);
  out.actor_threads = from.actor_threads;
  out.job_deadline_ms = milliseconds{from.job_deadline}.count();
  out.idle_delay_ms = milliseconds{from.idle_delay}.count();
  out.copy_latency_us = microseconds{from.copy_latency}.count();
  out.copy_bytes_per_second = from.copy_bytes_per_second;
  return out;
}

group_options take_group(const kvtide_group_options& from) {
  check_reserved(from.reserved, group_name);
  auto out = group_options{};
  out.tokens_per_block = from.tokens_per_block;
  out.sliding_window_tokens = from.sliding_window_tokens;
  out.draft = take_flag(from.draft, "draft");
  return out;
}

cuda_options take_cuda(const kvtide_cuda_options* given) {
  const auto from = take_struct(given, cuda_name, cuda_defaults());
  auto out = cuda_options{};
  out.path = take_enum(from.path, copy_path::kernel, "path");
  out.kernel_blocks = from.kernel_blocks;
  if (from.kernel_below != KVTIDE_AS_MEASURED)
    out.kernel_below = from.kernel_below;
  out.slice_bytes = from.slice_bytes;
  out.bytes_in_flight = from.bytes_in_flight;
  out.streams_per_direction = from.streams_per_direction;
  out.fences = take_enum(from.fences, fence_wait::host, "fences");
  out.huge_pages
    = take_enum(from.huge_pages, huge_page_use::required, "huge_pages");
  out.numa_binding = take_flag(from.numa_binding, "numa_binding");
  out.prefault_threads = from.prefault_threads;
  out.allow_pageable = take_flag(from.allow_pageable, "allow_pageable");
  out.calibration_file = take_text(from.calibration_file);
  return out;
}

} // namespace

options take_options(const kvtide_options* given) {
  const auto from = take_struct(given, options_name, defaults());
  check_reserved(from.reserved, options_name);
  auto out = options{};
  auto groups = take_structs(from.groups, from.group_count, group_name,
                             take_group, group_defaults());
  if (!groups.empty())
    out.groups = std::move(groups);
  out.model_fingerprint = take_text(from.model_fingerprint);
  out.host_bytes = from.host_bytes;
  out.blocks_per_chunk = from.blocks_per_chunk;
  out.tokens_per_hash = from.tokens_per_hash;
  out.ranks = from.ranks;
  out.policy = take_enum(from.policy, eviction_policy::arc, "policy");
  out.store_threshold = from.store_threshold;
  out.offload_prompt_only
    = take_flag(from.offload_prompt_only, "offload_prompt_only");
  out.enable_prefix_caching
    = take_flag(from.enable_prefix_caching, "enable_prefix_caching");
  out.cache_events = take_flag(from.cache_events, "cache_events");
  out.rules = take_enum(from.rules, rule_set::safe, "rules");
  out.max_deferrals = from.max_deferrals;
  out.promise_steps = from.promise_steps;
  out.store_retries = from.store_retries;
  out.max_store_jobs = from.max_store_jobs;
  out.delivery = take_enum(from.delivery, plan_delivery::by_engine, "delivery");
  out.device = take_enum(from.device, device_kind::cuda, "device");
  out.order_checks
    = take_enum(from.order_checks, order_checks::fatal, "order_checks");
  out.actor_threads = from.actor_threads;
  out.job_deadline = milliseconds{from.job_deadline_ms};
  out.idle_delay = milliseconds{from.idle_delay_ms};
  out.copy_latency = microseconds{from.copy_latency_us};
  out.copy_bytes_per_second = from.copy_bytes_per_second;
  if (from.cuda != nullptr)
    out.cuda = take_cuda(from.cuda);
  return out;
}

} // namespace kvtide::capi

using namespace kvtide::capi;

kvtide_status kvtide_options_init(kvtide_options* options) {
  return guarded([&] { give_defaults(options, options_name, defaults()); });
}

kvtide_status kvtide_group_options_init(kvtide_group_options* options) {
  return guarded([&] { give_defaults(options, group_name, group_defaults()); });
}

kvtide_status kvtide_cuda_options_init(kvtide_cuda_options* options) {
  return guarded([&] { give_defaults(options, cuda_name, cuda_defaults()); });
}
