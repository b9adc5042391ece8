// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/report.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <optional>

namespace kvtide::replay {

namespace {

using json = nlohmann::ordered_json;

json options_json(const replay_options& opts) {
  const auto& shape = opts.shape;
  return {{"seed", opts.seed},
          {"layers", shape.layers},
          {"kv_heads", shape.kv_heads},
          {"head_size", shape.head_size},
          {"dtype_bytes", shape.dtype_bytes},
          {"tokens_per_block", shape.tokens_per_block},
          {"sliding_window", shape.sliding_window},
          {"packed", shape.packed},
          {"device_blocks", shape.device_blocks},
          {"ranks", opts.ranks},
          {"token_budget", opts.token_budget},
          {"max_running", opts.max_running},
          {"step_ms", opts.step_ms},
          {"async", opts.async},
          {"abort_rate", opts.abort_rate},
          {"quick_reuse", opts.quick_reuse},
          {"revisit_rate", opts.revisit_rate},
          {"rules", to_word(opts.rules)},
          {"policy", to_word(opts.policy)},
          {"blocks_per_chunk", opts.blocks_per_chunk},
          {"host_bytes", opts.host_bytes},
          {"clock", to_word(opts.clock)},
          {"device", to_word(opts.device)},
          {"delivery", to_word(opts.delivery)},
          {"copy_latency_us", opts.copy_latency_us},
          {"copy_bandwidth", opts.copy_bytes_per_second()}};
}

json requests_json(const tally& counts) {
  auto aborted = json::object();
  for (auto index = std::size_t{0}; index < live_phases; ++index)
    aborted[to_word(static_cast<phase>(index))] = counts.aborted[index];
  return {
    {"added", counts.added},           {"finished", counts.finished},
    {"aborted", counts.all_aborted()}, {"aborted_while", aborted},
    {"preempted", counts.preempted},   {"ignored", counts.ignored},
    {"revisits", counts.revisits},     {"output_tokens", counts.output_tokens}};
}

json prefix_json(const report& what) {
  const auto& counts = what.counts;
  return {{"tokens", counts.prompt_tokens},
          {"device", counts.device_tokens},
          {"loaded", counts.loaded_tokens},
          {"recomputed", counts.prompt_tokens - counts.hit_tokens()},
          {"hit_rate", what.hit_rate()},
          {"ideal_hit_rate", what.ideal_hit_rate()}};
}

json mismatch_json(const mismatch& what) {
  return {{"reason", to_word(what.reason)},
          {"request", what.request},
          {"group", what.where.group},
          {"block", what.part.block},
          {"block_index", what.part.index},
          {"layer", what.where.layer},
          {"plane", what.where.plane == 0 ? "K" : "V"},
          {"rank", what.where.rank},
          {"token", what.token},
          {"byte", what.byte},
          {"got", std::to_integer<int>(what.got)},
          {"want", std::to_integer<int>(what.want)}};
}

json checks_json(const report& what) {
  auto compared = json::object();
  auto wrong = json::object();
  for (auto index = std::size_t{0}; index < check_reasons; ++index) {
    const auto* word = to_word(static_cast<check_reason>(index));
    compared[word] = what.compared_bytes[index];
    wrong[word] = what.mismatches[index];
  }
  auto res = json{{"stored", what.counts.stored_bytes},
                  {"loaded", what.counts.loaded_bytes},
                  {"copied", what.copies.bytes},
                  {"compared", what.all_compared_bytes()},
                  {"compared_by_reason", compared},
                  {"mismatches", what.all_mismatches()},
                  {"mismatches_by_reason", wrong}};
  if (what.first_mismatch)
    res["first_mismatch"] = mismatch_json(*what.first_mismatch);
  return res;
}

json runtime_json(const report& what) {
  const auto& now = what.runtime;
  return {{"slots", what.slots},
          {"slot_bytes", what.slot_bytes},
          {"free_slots", now.free_slots},
          {"lookups", now.lookups},
          {"deferrals", now.deferrals},
          {"hit_tokens", now.hit_tokens},
          {"store_jobs", now.store_jobs},
          {"load_jobs", now.load_jobs},
          {"failed_jobs", now.failed_jobs},
          {"stored_chunks", now.stored_chunks},
          {"loaded_chunks", now.loaded_chunks},
          {"evicted_chunks", now.evicted_chunks},
          {"refused_stores", now.refused_stores},
          {"flushed_jobs", now.flushed_jobs},
          {"late_messages", now.late_messages},
          {"overloads", what.overloads}};
}

json overlap_json(const tally& counts) {
  return {{"flush_steps", counts.flush_steps},
          {"flushed_jobs", counts.flushed_jobs},
          {"in_flight_at_flushes", counts.in_flight_at_flush},
          {"max_in_flight_at_flush", counts.max_in_flight_at_flush},
          {"flush_waits", counts.flush_waits},
          {"flush_delays", counts.flush_delays},
          {"late_completions", counts.late_completions},
          {"loads_overlapping_stores", counts.loads_overlapping_stores},
          {"preemptions", counts.preemptions},
          {"deferrals", counts.deferrals},
          {"held_blocks", counts.held_blocks},
          {"load_failures", counts.load_failures}};
}

json copies_json(const report& what) {
  const auto or_null = [](std::optional<double> value) {
    return value ? json(*value) : json(nullptr);
  };
  auto plain = std::optional<double>{};
  if (what.memcpy_bytes_per_second > 0)
    plain = what.memcpy_bytes_per_second;
  return {{"to_memcpy", or_null(what.copy_to_memcpy())},
          {"bytes_per_second", or_null(what.copy_bytes_per_second())},
          {"memcpy_bytes_per_second", or_null(plain)},
          {"fragment_bytes", what.opts.shape.fragment_bytes()},
          {"seconds", std::chrono::duration<double>{what.copies.time}.count()}};
}

// Moments are in seconds since 1970, to be compared with those of others.
json outages_json(const report& what) {
  const auto seconds = [](std::optional<outage::moment> at) {
    return at
           ? json(std::chrono::duration<double>(at->time_since_epoch()).count())
           : json(nullptr);
  };
  auto res = json::array();
  for (const auto& one : what.outages)
    res.push_back({{"rank", one.rank},
                   {"process", one.process},
                   {"link", one.link},
                   {"same_life", one.same_life},
                   {"lost", seconds(one.lost)},
                   {"back", seconds(one.back)},
                   {"hit", seconds(one.hit)}});
  return res;
}

double to_ms(std::chrono::nanoseconds span) {
  return std::chrono::duration<double, std::milli>{span}.count();
}

json timing_json(const report& what) {
  const auto& times = what.times;
  const auto& spent = times.runtime;
  return {{"wall_seconds", times.wall_seconds},
          {"drain_seconds", times.drain_seconds},
          {"runtime_share", times.share(spent.all())},
          {"runtime_shares",
           {{"calls", times.share(spent.calls)},
            {"news", times.share(spent.news)},
            {"waits", times.share(spent.waits)}}},
          {"step_us_p50", times.step_us(0.5)},
          {"step_us_p99", times.step_us(0.99)},
          {"step_us_max", times.step_us(1)},
          {"longest_wait_ms", to_ms(spent.longest)},
          {"longest_wait_call", spent.longest_call},
          {"longest_gap_ms", to_ms(times.longest_gap)},
          {"steps_without_cache", what.counts.steps_without_cache},
          {"outages", outages_json(what)},
          {"copies", copies_json(what)}};
}

} // namespace

std::string to_json(const report& what) {
  auto left = json::object();
  for (const auto& [name, value] : what.leftovers())
    left[name] = value;
  auto res = json{{"trace", what.opts.trace},
                  {"rows", what.rows},
                  {"interrupted", what.interrupted},
                  {"options", options_json(what.opts)},
                  {"simulated_ns", what.counts.simulated},
                  {"steps", what.counts.steps},
                  {"empty_steps", what.counts.empty_steps},
                  {"requests", requests_json(what.counts)},
                  {"prefix_tokens", prefix_json(what)},
                  {"bytes", checks_json(what)},
                  {"runtime", runtime_json(what)},
                  {"overlap", overlap_json(what.counts)},
                  {"left_over", left},
                  {"first_failure", what.first_failure},
                  {"timing", timing_json(what)}};
  return res.dump(2) + "\n";
}

} // namespace kvtide::replay
