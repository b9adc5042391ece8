// SPDX-License-Identifier: Apache-2.0

/// @file
/// The engine's calls that are answered later.

#include "capi/arguments.hpp"
#include "capi/handles.hpp"

#include <chrono>

using namespace kvtide::capi;

namespace {

constexpr auto finish_name = "kvtide_finish_call";

/// Makes a call and hands out its ticket.
template <class F>
kvtide_status send(kvtide_runtime* runtime, uint64_t* ticket, F call) {
  return guarded([&] {
    const kvtide::ticket_id made = call(not_null(runtime, "runtime").side);
    if (made == 0)
      throw refusal{{kvtide::ec::out_of_order,
                     "another thread is in a call of this runtime; let one "
                     "thread at a time use it"}};
    if (ticket != nullptr)
      *ticket = made;
  });
}

kvtide_add_request add_defaults() {
  const auto from = kvtide::add_request{};
  auto out = kvtide_add_request{};
  out.struct_size = sizeof(out);
  out.cap = from.cap;
  out.priority = from.priority;
  out.time_to_live = from.time_to_live;
  return out;
}

kvtide::add_request take_add(const kvtide_add_request* call) {
  const auto from = take_struct(call, "kvtide_add_request", add_defaults());
  check_reserved(from.reserved, "kvtide_add_request");
  auto out = kvtide::add_request{};
  out.request = from.request;
  out.prompt_tokens = from.prompt_tokens;
  out.known_tokens = from.known_tokens;
  out.no_read = take_flag(from.no_read, "no_read");
  out.no_store = take_flag(from.no_store, "no_store");
  out.prompt_only = take_flag(from.prompt_only, "prompt_only");
  out.cap = from.cap;
  out.priority = from.priority;
  out.time_to_live = from.time_to_live;
  out.tenant = take_text(from.tenant);
  return out;
}

void check_hash_bytes(size_t bytes, const char* name) {
  if (bytes > kvtide::prefix_hash::max_bytes)
    refuse(std::string{name} + " is " + std::to_string(bytes)
           + "; a hash has at most "
           + std::to_string(kvtide::prefix_hash::max_bytes) + " bytes");
}

kvtide::extend_keys take_extend(const kvtide_extend_keys* call) {
  const auto from = take_struct(call, "kvtide_extend_keys");
  check_hash_bytes(from.hash_bytes, "hash_bytes");
  check_hash_bytes(from.parent_bytes, "parent_bytes");
  if (from.hash_count > 0 && from.hash_bytes == 0)
    refuse("hash_bytes is 0, but there are hashes; say how long each is");
  check_list(from.hashes, from.hash_count,
             from.hash_bytes == 0 ? 1 : from.hash_bytes, "hashes");
  check_list(from.parent, from.parent_bytes, 1, "parent");
  auto out = kvtide::extend_keys{};
  out.request = from.request;
  out.first = from.first;
  out.hashes.reserve(from.hash_count);
  const auto* at = static_cast<const unsigned char*>(from.hashes);
  for (size_t i = 0; i < from.hash_count; ++i, at += from.hash_bytes)
    out.hashes.emplace_back(at, from.hash_bytes);
  out.token_ids = take_list(from.token_ids, from.token_id_count, "token_ids");
  out.parent = kvtide::prefix_hash{from.parent, from.parent_bytes};
  return out;
}

std::vector<kvtide::block_id> take_blocks(const kvtide_block_list& list) {
  return take_list(list.ids, list.count, "kvtide_block_list::ids");
}

std::vector<std::uint8_t> take_flags(const kvtide_flag_list& list) {
  auto out = take_list(list.flags, list.count, "kvtide_flag_list::flags");
  for (const auto flag : out)
    (void)take_flag(flag, "a flag of kvtide_flag_list");
  return out;
}

kvtide::allocated take_allocated(const kvtide_allocated* call) {
  const auto from = take_struct(call, "kvtide_allocated");
  auto out = kvtide::allocated{};
  out.request = from.request;
  out.external = from.external;
  out.blocks
    = take_lists(from.blocks, from.block_list_count, "blocks", take_blocks);
  out.hashed
    = take_lists(from.hashed, from.hashed_list_count, "hashed", take_flags);
  return out;
}

kvtide::finish_call make_finish(const kvtide_finish_call& from) {
  check_reserved(from.reserved, finish_name);
  return {from.request,
          take_enum(from.reason, kvtide::finish_reason::ignored, "reason"),
          from.known, from.computed};
}

kvtide::step_row make_row(const kvtide_step_row& from) {
  check_reserved(from.reserved, "kvtide_step_row");
  auto out = kvtide::step_row{};
  out.request = from.request;
  out.kind = take_enum(from.kind, kvtide::row_kind::resumed, "kind");
  out.new_blocks = take_lists(from.new_blocks, from.new_block_list_count,
                              "new_blocks", take_blocks);
  out.computed = from.computed;
  out.scheduled = from.scheduled;
  out.known = from.known;
  return out;
}

kvtide::step_call take_step(const kvtide_step_call* call) {
  const auto from = take_struct(call, "kvtide_step_call");
  auto out = kvtide::step_call{};
  out.step = from.step;
  out.rows
    = take_structs(from.rows, from.row_count, "kvtide_step_row", make_row);
  out.preempted = take_list(from.preempted, from.preempted_count, "preempted");
  out.finished = take_structs(from.finished, from.finished_count, finish_name,
                              make_finish);
  return out;
}

} // namespace

kvtide_status kvtide_add_request_init(kvtide_add_request* call) {
  return guarded(
    [&] { give_defaults(call, "kvtide_add_request", add_defaults()); });
}

kvtide_status kvtide_add(kvtide_runtime* runtime,
                         const kvtide_add_request* call, uint64_t* ticket) {
  return send(runtime, ticket,
              [&](kvtide::runtime& side) { return side.add(take_add(call)); });
}

kvtide_status kvtide_extend(kvtide_runtime* runtime,
                            const kvtide_extend_keys* call, uint64_t* ticket) {
  return send(runtime, ticket, [&](kvtide::runtime& side) {
    return side.extend(take_extend(call));
  });
}

kvtide_status kvtide_lookup(kvtide_runtime* runtime,
                            const kvtide_lookup_row* rows, size_t row_count,
                            uint64_t* ticket) {
  const auto make = [](const kvtide_lookup_row& from) {
    return kvtide::lookup_row{from.request, from.local, from.known_tokens};
  };
  return send(runtime, ticket, [&](kvtide::runtime& side) {
    return side.lookup(
      take_structs(rows, row_count, "kvtide_lookup_row", make));
  });
}

kvtide_status kvtide_decline(kvtide_runtime* runtime, uint64_t promise,
                             uint64_t* ticket) {
  return send(runtime, ticket,
              [&](kvtide::runtime& side) { return side.decline(promise); });
}

kvtide_status kvtide_allocate(kvtide_runtime* runtime,
                              const kvtide_allocated* call, uint64_t* ticket) {
  return send(runtime, ticket, [&](kvtide::runtime& side) {
    return side.allocate(take_allocated(call));
  });
}

kvtide_status kvtide_finish(kvtide_runtime* runtime,
                            const kvtide_finish_call* call, uint64_t* ticket) {
  return send(runtime, ticket, [&](kvtide::runtime& side) {
    return side.finish(make_finish(take_struct(call, finish_name)));
  });
}

kvtide_status kvtide_truncate(kvtide_runtime* runtime, uint64_t request,
                              int64_t tokens, uint64_t* ticket) {
  return send(runtime, ticket, [&](kvtide::runtime& side) {
    return side.truncate({request, tokens});
  });
}

kvtide_status kvtide_step(kvtide_runtime* runtime, const kvtide_step_call* call,
                          uint64_t* ticket) {
  return send(runtime, ticket, [&](kvtide::runtime& side) {
    return side.step(take_step(call));
  });
}

kvtide_status kvtide_outputs(kvtide_runtime* runtime, uint64_t step,
                             const kvtide_output_row* rows, size_t row_count,
                             uint64_t* ticket) {
  const auto make = [](const kvtide_output_row& from) {
    return kvtide::output_row{from.request, from.known, from.computed};
  };
  return send(runtime, ticket, [&](kvtide::runtime& side) {
    return side.outputs(
      {step, take_structs(rows, row_count, "kvtide_output_row", make)});
  });
}

kvtide_status kvtide_reset(kvtide_runtime* runtime, uint64_t* ticket) {
  return send(runtime, ticket,
              [](kvtide::runtime& side) { return side.reset(); });
}

kvtide_status kvtide_take_events(kvtide_runtime* runtime, uint64_t* ticket) {
  return send(runtime, ticket,
              [](kvtide::runtime& side) { return side.take_events(); });
}

kvtide_status kvtide_get_stats(kvtide_runtime* runtime, uint64_t* ticket) {
  return send(runtime, ticket,
              [](kvtide::runtime& side) { return side.get_stats(); });
}

kvtide_status kvtide_explain(kvtide_runtime* runtime, uint64_t request,
                             uint64_t* ticket) {
  return send(runtime, ticket,
              [&](kvtide::runtime& side) { return side.explain(request); });
}

kvtide_status kvtide_sleep(kvtide_runtime* runtime, int64_t deadline_ms,
                           uint64_t* ticket) {
  return send(runtime, ticket, [&](kvtide::runtime& side) {
    return side.sleep(std::chrono::milliseconds{deadline_ms});
  });
}

kvtide_status kvtide_wake(kvtide_runtime* runtime, uint64_t* ticket) {
  return send(runtime, ticket,
              [](kvtide::runtime& side) { return side.wake(); });
}

kvtide_status kvtide_shutdown(kvtide_runtime* runtime, int64_t deadline_ms,
                              uint64_t* ticket) {
  return send(runtime, ticket, [&](kvtide::runtime& side) {
    return side.shutdown(std::chrono::milliseconds{deadline_ms});
  });
}

kvtide_status kvtide_advance(kvtide_runtime* runtime, int64_t now_ns,
                             uint64_t* ticket) {
  return send(runtime, ticket,
              [&](kvtide::runtime& side) { return side.advance(now_ns); });
}
