// SPDX-License-Identifier: Apache-2.0

/// @file
/// The rank side.

#include "capi/arguments.hpp"
#include "capi/handles.hpp"

#include <chrono>

using namespace kvtide::capi;

namespace {

constexpr auto memory_name = "kvtide_kv_memory";

kvtide_kv_memory memory_defaults() {
  const auto from = kvtide::kv_memory{};
  auto out = kvtide_kv_memory{};
  out.struct_size = sizeof(out);
  out.writer = from.writer;
  out.writers = from.writers;
  return out;
}

kvtide::kv_tensor make_tensor(const kvtide_kv_tensor& from) {
  auto out = kvtide::kv_tensor{};
  out.base = from.base;
  out.bytes = from.bytes;
  out.kind = take_enum(from.kind, kvtide::memory_kind::device_mapped, "kind");
  out.blocks = from.blocks;
  out.block_stride = from.block_stride;
  out.page_bytes = from.page_bytes;
  return out;
}

kvtide::kv_reference make_reference(const kvtide_kv_reference& from) {
  check_reserved(from.reserved, "kvtide_kv_reference");
  return {from.group, from.layer, from.tensor, from.offset, from.bytes};
}

kvtide::kv_memory take_memory(const kvtide_kv_memory* memory) {
  const auto from = take_struct(memory, memory_name, memory_defaults());
  auto out = kvtide::kv_memory{};
  out.rank = from.rank;
  out.device = from.device;
  out.tensors = take_structs(from.tensors, from.tensor_count,
                             "kvtide_kv_tensor", make_tensor);
  out.references = take_structs(from.references, from.reference_count,
                                "kvtide_kv_reference", make_reference);
  out.streams = take_list(from.streams, from.stream_count, "streams");
  out.writer = from.writer;
  out.writers = from.writers;
  out.model_fingerprint = take_text(from.model_fingerprint);
  return out;
}

kvtide::rank& side_of(kvtide_rank* rank) {
  return not_null(rank, "rank").side;
}

} // namespace

kvtide_status kvtide_kv_memory_init(kvtide_kv_memory* memory) {
  return guarded(
    [&] { give_defaults(memory, memory_name, memory_defaults()); });
}

kvtide_status kvtide_rank_register_kv(kvtide_rank* rank,
                                      const kvtide_kv_memory* memory) {
  return guarded([&] { side_of(rank).register_kv(take_memory(memory)); });
}

kvtide_status kvtide_rank_unregister_kv(kvtide_rank* rank) {
  return guarded([&] { side_of(rank).unregister_kv(); });
}

kvtide_status kvtide_rank_begin_step(kvtide_rank* rank, uint64_t step,
                                     const void* plan, size_t plan_bytes) {
  return guarded([&] {
    side_of(rank).begin_step(step, take_bytes(plan, plan_bytes, "plan"));
  });
}

kvtide_status kvtide_rank_end_step(kvtide_rank* rank, uint64_t step,
                                   const uint64_t* events, size_t event_count) {
  return guarded([&] {
    side_of(rank).end_step(step, take_list(events, event_count, "events"));
  });
}

kvtide_status kvtide_rank_get_stats(kvtide_rank* rank) {
  return guarded([&] { side_of(rank).get_stats(); });
}

kvtide_status kvtide_rank_make_event(kvtide_rank* rank, uint64_t* event) {
  return guarded([&] {
    auto& side = side_of(rank);
    auto& out = not_null(event, "event");
    out = check(side.make_event());
  });
}

kvtide_status kvtide_rank_complete_event(kvtide_rank* rank, uint64_t event) {
  return guarded([&] { side_of(rank).complete_event(event); });
}

kvtide_status kvtide_rank_record_event(kvtide_rank* rank, uint64_t stream,
                                       uint64_t* event) {
  return guarded([&] {
    auto& side = side_of(rank);
    auto& out = not_null(event, "event");
    out = check(side.record_event(stream));
  });
}

kvtide_status kvtide_rank_poll(kvtide_rank* rank, kvtide_batch** batch) {
  return guarded([&] {
    auto& events = not_null(rank, "rank").events;
    not_null(batch, "batch") = events.poll();
  });
}

kvtide_status kvtide_rank_await(kvtide_rank* rank, int32_t kind,
                                int64_t timeout_ms, kvtide_batch** event) {
  return guarded([&] {
    auto& events = not_null(rank, "rank").events;
    auto& out = not_null(event, "event");
    if (kind < KVTIDE_EVENT_KV_REGISTERED || kind > KVTIDE_EVENT_RANK_STATS)
      refuse("kind is " + std::to_string(kind)
             + ", which no event of a rank is; pass one of the constants "
               "KVTIDE_EVENT_... from "
             + std::to_string(KVTIDE_EVENT_KV_REGISTERED) + " on");
    const auto is_it = [&](const kvtide::rank_event& one) {
      return kind_of(one) == kind
          || std::holds_alternative<kvtide::rank_failed>(one);
    };
    auto made
      = batch_ptr{events.await(std::chrono::milliseconds{timeout_ms}, is_it)};
    if (made == nullptr)
      time_out(timeout_ms);
    if (kind != KVTIDE_EVENT_RANK_FAILED)
      check_failure(*made);
    out = made.release();
  });
}

int kvtide_rank_event_fd(const kvtide_rank* rank) {
  return rank == nullptr ? -1 : rank->side.event_fd();
}

kvtide_status kvtide_rank_wait(const kvtide_rank* rank, int64_t timeout_ms) {
  return guarded([&] {
    const auto& events = not_null(rank, "rank").events;
    if (!events.wait(std::chrono::milliseconds{timeout_ms}))
      time_out(timeout_ms);
  });
}
