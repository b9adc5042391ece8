// SPDX-License-Identifier: Apache-2.0

#include "capi/batch.hpp"

#include "capi/border.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>
#include <utility>

namespace kvtide::capi {

namespace {

static_assert(std::is_same_v<block_id, std::uint32_t>);
static_assert(std::is_same_v<job_id, std::uint64_t>);

/// Makes one event after the other. Nothing of theirs is copied but numbers.
class writer {
public:
  explicit writer(kvtide_batch& out) : out_(out) {
    // nop
  }

  /// Begins an event, and ends the one before.
  void begin(std::int32_t kind, ticket_id ticket = 0, rank_id rank = 0) {
    auto& event = out_.events.emplace_back();
    event.struct_size = sizeof(event);
    event.kind = kind;
    event.rank = rank;
    event.ticket = ticket;
  }

  /// Says more of the event that was begun last.
  [[nodiscard]] auto& as() {
    return out_.events.back().as;
  }

  /// Makes a list with one element for each of `from`.
  template <class T, class From, class F>
  const T* list(const From& from, F make) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (from.size() == 0)
      return nullptr;
    auto* made = static_cast<T*>(
      out_.memory.allocate(sizeof(T) * from.size(), alignof(T)));
    auto* at = made;
    for (const auto& one : from)
      new (at++) T(make(one));
    return made;
  }

  template <class T>
  T* one() {
    return new (out_.memory.allocate(sizeof(T), alignof(T))) T{};
  }

private:
  kvtide_batch& out_;
};

kvtide_block_list blocks_of(const std::vector<block_id>& from) {
  return {from.data(), from.size()};
}

kvtide_id_list ids_of(const std::vector<std::uint64_t>& from) {
  return {from.data(), from.size()};
}

kvtide_chunk_key key_of(const chunk_key& from) {
  return {from.hash.data(), from.hash.size(), from.model, from.group, 0};
}

kvtide_lookup_hit hit_of(const lookup_hit& from) {
  return {from.request, from.tokens, from.promise, from.ask_again ? 1u : 0u, 0};
}

kvtide_job_row row_of(const job_row& from) {
  return {key_of(from.key), from.slot, from.chunk, blocks_of(from.blocks)};
}

kvtide_failure failure_of(const error& from, request_id request = 0) {
  return {request, from.text.c_str(), static_cast<kvtide_status>(from.code), 0};
}

template <std::size_t Size>
void copy_counts(const std::array<std::uint64_t, Size>& from,
                 std::uint64_t (&to)[Size]) {
  std::copy(from.begin(), from.end(), to);
}

const kvtide_job* jobs_of(writer& out, const std::vector<job>& from) {
  return out.list<kvtide_job>(from, [&out](const job& one) {
    return kvtide_job{one.id,
                      one.request,
                      static_cast<std::int32_t>(one.kind),
                      0,
                      out.list<kvtide_job_row>(one.rows, row_of),
                      one.rows.size()};
  });
}

kvtide_stored_chunk stored_of(writer& out, const stored_chunk& from) {
  auto made = kvtide_stored_chunk{};
  made.key = key_of(from.key);
  if (from.parent) {
    auto* parent = out.one<kvtide_chunk_key>();
    *parent = key_of(*from.parent);
    made.parent = parent;
  }
  made.token_ids = from.token_ids.data();
  made.token_id_count = from.token_ids.size();
  made.tokens = from.tokens;
  return made;
}

kvtide_cache_event event_of(writer& out, const cache_event& from) {
  const auto stored
    = [&out](const stored_chunk& one) { return stored_of(out, one); };
  return {static_cast<std::int32_t>(from.kind),
          static_cast<std::int32_t>(from.medium),
          out.list<kvtide_stored_chunk>(from.stored, stored),
          from.stored.size(),
          out.list<kvtide_chunk_key>(from.removed, key_of),
          from.removed.size()};
}

// -- of the engine ------------------------------------------------------------

void write(writer& out, const lookup_answer& from) {
  out.begin(KVTIDE_EVENT_LOOKUP, from.ticket);
  out.as().lookup
    = {out.list<kvtide_lookup_hit>(from.hits, hit_of), from.hits.size()};
}

void write(writer& out, const step_plan& from) {
  out.begin(KVTIDE_EVENT_STEP_PLAN, from.ticket);
  auto& to = out.as().step_plan;
  to.step = from.step;
  to.loads = jobs_of(out, from.loads);
  to.load_count = from.loads.size();
  to.stores = jobs_of(out, from.stores);
  to.store_count = from.stores.size();
  to.flush = ids_of(from.flush);
  to.bytes = from.bytes.data();
  to.byte_count = from.bytes.size();
  to.pending_work = from.pending_work;
}

void write(writer& out, const finish_answer& from) {
  out.begin(KVTIDE_EVENT_FINISH, from.ticket);
  out.as().finish = {from.request, blocks_of(from.held)};
}

void write(writer& out, const stats_answer& answer) {
  out.begin(KVTIDE_EVENT_STATS, answer.ticket);
  const auto& from = answer.values;
  auto& to = *out.one<kvtide_stats>();
  to.struct_size = sizeof(to);
  to.tracked_requests = from.tracked_requests;
  to.jobs_in_flight = from.jobs_in_flight;
  to.host_slots = from.host_slots;
  to.free_slots = from.free_slots;
  to.quarantined_slots = from.quarantined_slots;
  to.pinned_slots = from.pinned_slots;
  to.held_slots = from.held_slots;
  to.writing_slots = from.writing_slots;
  to.watched_blocks = from.watched_blocks;
  to.sliding_entries = from.sliding_entries;
  to.steps = from.steps;
  to.lookups = from.lookups;
  to.deferrals = from.deferrals;
  to.hit_tokens = from.hit_tokens;
  to.store_jobs = from.store_jobs;
  to.load_jobs = from.load_jobs;
  to.failed_jobs = from.failed_jobs;
  to.stored_chunks = from.stored_chunks;
  to.loaded_chunks = from.loaded_chunks;
  to.evicted_chunks = from.evicted_chunks;
  to.refused_stores = from.refused_stores;
  to.flushed_jobs = from.flushed_jobs;
  to.resets = from.resets;
  to.order_errors = from.order_errors;
  copy_counts(from.order_errors_by_rule, to.order_errors_by_rule);
  to.lost_requests = from.lost_requests;
  to.lost_caches = from.lost_caches;
  to.late_messages = from.late_messages;
  out.as().stats = &to;
}

void write(writer& out, const events_answer& from) {
  out.begin(KVTIDE_EVENT_CACHE_EVENTS, from.ticket);
  const auto event
    = [&out](const cache_event& one) { return event_of(out, one); };
  out.as().cache_events
    = {out.list<kvtide_cache_event>(from.events, event), from.events.size()};
}

void write(writer& out, const call_done& from) {
  out.begin(KVTIDE_EVENT_CALL_DONE, from.ticket);
  out.as().done = {ids_of(from.in_flight)};
}

void write(writer& out, const call_failed& from) {
  out.begin(KVTIDE_EVENT_CALL_FAILED, from.ticket);
  out.as().failed = failure_of(from.reason, from.request);
}

void write(writer& out, const load_done& from) {
  out.begin(KVTIDE_EVENT_LOAD_DONE);
  out.as().load.request = from.request;
  out.as().load.job = from.job;
}

void write(writer& out, const load_failed& from) {
  out.begin(KVTIDE_EVENT_LOAD_FAILED);
  out.as().load = {from.request,
                   from.job,
                   from.first_bad_token,
                   blocks_of(from.blocks),
                   from.use_new_blocks ? 1u : 0u,
                   0};
}

void write(writer& out, const blocks_released& from) {
  out.begin(KVTIDE_EVENT_BLOCKS_RELEASED);
  out.as().released = {from.request, blocks_of(from.blocks)};
}

void write(writer& out, const rank_lost& from) {
  out.begin(KVTIDE_EVENT_RANK_LOST, 0, from.rank);
  out.as().life = {from.incarnation, 0};
}

void write(writer& out, const rank_back& from) {
  out.begin(KVTIDE_EVENT_RANK_BACK, 0, from.rank);
  out.as().life = {from.incarnation, from.same_life};
}

void write(writer& out, const overload& from) {
  out.begin(KVTIDE_EVENT_OVERLOAD);
  out.as().overload = {from.jobs_in_flight};
}

void write(writer& out, const cache_lost&) {
  out.begin(KVTIDE_EVENT_CACHE_LOST);
}

void write(writer& out, const runtime_lost& from) {
  out.begin(KVTIDE_EVENT_RUNTIME_LOST);
  out.as().failed = failure_of(from.reason);
}

kvtide_state_list states_of(const std::vector<chunk_state>& from) {
  static_assert(sizeof(chunk_state) == sizeof(std::uint8_t));
  return {reinterpret_cast<const std::uint8_t*>(from.data()), from.size()};
}

void write(writer& out, const explain_answer& from) {
  out.begin(KVTIDE_EVENT_EXPLAIN, from.ticket);
  auto& to = *out.one<kvtide_explain_answer>();
  to.struct_size = sizeof(to);
  to.request = from.request;
  to.prompt_tokens = from.prompt_tokens;
  to.known_tokens = from.known_tokens;
  to.local = from.local;
  to.hashed_tokens = from.hashed_tokens;
  to.tokens = from.tokens;
  to.ask_again = from.ask_again;
  to.reason = static_cast<std::int32_t>(from.reason);
  to.chunk = from.chunk;
  to.group = from.group;
  to.text = from.text.c_str();
  to.chunks = out.list<kvtide_state_list>(from.chunks, states_of);
  to.chunk_list_count = from.chunks.size();
  out.as().explain = &to;
}

// -- of a rank ----------------------------------------------------------------

void write(writer& out, const kv_registered& from) {
  out.begin(KVTIDE_EVENT_KV_REGISTERED, 0, from.rank);
  const auto text = [](const std::string& one) { return one.c_str(); };
  out.as().registered = {from.slots,
                         from.slot_bytes,
                         static_cast<kvtide_status>(from.reason.code),
                         0,
                         from.reason.text.c_str(),
                         out.list<const char*>(from.notes, text),
                         from.notes.size()};
}

void write(writer& out, const kv_unregistered& from) {
  out.begin(KVTIDE_EVENT_KV_UNREGISTERED, 0, from.rank);
}

void write(writer& out, const step_ready& from) {
  out.begin(KVTIDE_EVENT_STEP_READY, 0, from.rank);
  out.as().ready = {from.step, from.wait_for.handle,
                    static_cast<std::int32_t>(from.wait_for.kind), 0};
}

void write(writer& out, const rank_failed& from) {
  out.begin(KVTIDE_EVENT_RANK_FAILED, 0, from.rank);
  out.as().failed = failure_of(from.reason);
}

void write(writer& out, const rank_stats& from) {
  out.begin(KVTIDE_EVENT_RANK_STATS, 0, from.rank);
  auto& to = *out.one<kvtide_rank_stats>();
  to.struct_size = sizeof(to);
  to.order_errors = from.order_errors;
  copy_counts(from.order_errors_by_rule, to.order_errors_by_rule);
  to.late_jobs = from.late_jobs;
  to.failed_jobs = from.failed_jobs;
  to.copied_bytes = from.copied_bytes;
  to.copy_time_ns = std::chrono::nanoseconds{from.copy_time}.count();
  out.as().rank_stats = &to;
}

template <class Event>
void describe_all(const std::vector<Event>& events, kvtide_batch& out) {
  out.events.reserve(events.size());
  auto to = writer{out};
  for (const auto& event : events)
    std::visit([&to](const auto& one) { write(to, one); }, event);
}

} // namespace

void describe(const std::vector<engine_event>& events, kvtide_batch& out) {
  describe_all(events, out);
}

void describe(const std::vector<rank_event>& events, kvtide_batch& out) {
  describe_all(events, out);
}

ticket_id ticket_of(const engine_event& event) {
  return std::visit(
    [](const auto& one) -> ticket_id {
      if constexpr (requires { one.ticket; })
        return one.ticket;
      else
        return 0;
    },
    event);
}

std::int32_t kind_of(const rank_event& event) {
  constexpr std::int32_t kinds[] = {
    KVTIDE_EVENT_KV_REGISTERED, KVTIDE_EVENT_KV_UNREGISTERED,
    KVTIDE_EVENT_STEP_READY, KVTIDE_EVENT_RANK_FAILED, KVTIDE_EVENT_RANK_STATS};
  static_assert(std::size(kinds) == std::variant_size_v<rank_event>);
  return kinds[event.index()];
}

void check_failure(const kvtide_batch& one) {
  const auto& event = one.events.front();
  const auto fail = [](kvtide_status code, const char* text) {
    if (code != KVTIDE_OK)
      throw refusal{{static_cast<ec>(code), text}};
  };
  if (event.kind == KVTIDE_EVENT_CALL_FAILED
      || event.kind == KVTIDE_EVENT_RANK_FAILED)
    fail(event.as.failed.code, event.as.failed.text);
  else if (event.kind == KVTIDE_EVENT_KV_REGISTERED)
    fail(event.as.registered.code, event.as.registered.text);
}

} // namespace kvtide::capi

size_t kvtide_batch_size(const kvtide_batch* batch) {
  return batch == nullptr ? 0 : batch->events.size();
}

const kvtide_event* kvtide_batch_at(const kvtide_batch* batch, size_t index) {
  return index < kvtide_batch_size(batch) ? &batch->events[index] : nullptr;
}

void kvtide_batch_free(kvtide_batch* batch) {
  delete batch;
}
