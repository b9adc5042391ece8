// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/report.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>

namespace kvtide::replay {

namespace {

using json = nlohmann::ordered_json;

template <class Range>
std::uint64_t sum(const Range& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

double ratio(token_count part, token_count whole) {
  return whole == 0 ? 0.0
                    : static_cast<double>(part) / static_cast<double>(whole);
}

token_count hit_tokens(const tally& counts) {
  return counts.device_tokens + counts.loaded_tokens;
}

// Answers microseconds.
double percentile(const std::vector<std::uint32_t>& sorted, double share) {
  if (sorted.empty())
    return 0;
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(last * share)] / 1e3;
}

// What must be zero at the end, by name.
std::vector<std::pair<const char*, std::uint64_t>> ends_of(const report& what) {
  const auto& now = what.runtime;
  return {{"tracked_requests", now.tracked_requests},
          {"jobs_in_flight", now.jobs_in_flight + what.left.jobs_at_shutdown},
          {"pinned_slots", now.pinned_slots},
          {"held_slots", now.held_slots},
          {"writing_slots", now.writing_slots},
          {"quarantined_slots", now.quarantined_slots},
          {"watched_blocks", now.watched_blocks},
          {"sliding_entries", now.sliding_entries},
          {"engine_requests", what.left.requests},
          {"engine_blocks", what.left.blocks},
          {"order_errors", now.order_errors},
          {"failed_calls", what.failed_calls}};
}

// -- text ---------------------------------------------------------------------

// 1234567 -> "1,234,567".
template <class Number>
std::string grouped(Number value) {
  auto res = std::to_string(value);
  for (auto at = res.size(); at > 3;) {
    at -= 3;
    res.insert(at, ",");
  }
  return res;
}

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", digits, value);
  return buffer;
}

std::string percent(double share) {
  return fixed(share * 100, 2) + " %";
}

std::string bytes(std::uint64_t value) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto scaled = static_cast<double>(value);
  auto unit = std::size_t{0};
  for (; scaled >= 10'240 && unit < 4; ++unit)
    scaled /= 1'024;
  return fixed(scaled, unit == 0 ? 0 : 1) + " " + std::string{units[unit]};
}

class page {
public:
  void line(std::string_view name, const std::string& text) {
    text_ += name;
    text_.append(name.size() < 18 ? 18 - name.size() : 1, ' ');
    text_ += text + "\n";
  }

  [[nodiscard]] std::string take() {
    return std::move(text_);
  }

private:
  std::string text_;
};

void write_requests(page& out, const report& what) {
  const auto& counts = what.counts;
  auto text = grouped(counts.finished) + " finished, "
            + grouped(sum(counts.aborted)) + " aborted";
  auto phases = std::string{};
  for (auto index = std::size_t{0}; index < live_phases; ++index)
    if (counts.aborted[index] > 0)
      phases += (phases.empty() ? "" : ", ") + grouped(counts.aborted[index])
              + " " + to_word(static_cast<phase>(index));
  text += phases.empty() ? "" : " (" + phases + ")";
  text += ", " + grouped(counts.preempted) + " preempted";
  if (counts.ignored > 0)
    text += ", " + grouped(counts.ignored) + " too long";
  out.line("requests", text);
  out.line("prompt tokens",
           grouped(counts.prompt_tokens) + " at first admission");
  const auto part = [&](token_count tokens) {
    return grouped(tokens) + " (" + percent(ratio(tokens, counts.prompt_tokens))
         + ")";
  };
  out.line("  on device", part(counts.device_tokens));
  out.line("  loaded", part(counts.loaded_tokens));
  out.line("  recomputed", part(counts.prompt_tokens - hit_tokens(counts)));
  out.line("token hit rate",
           percent(ratio(hit_tokens(counts), counts.prompt_tokens))
             + ", ideal (unlimited cache) "
             + percent(ratio(what.ideal.hit_tokens, what.ideal.prompt_tokens)));
}

void write_bytes(page& out, const report& what) {
  const auto& counts = what.counts;
  const auto& compared = what.compared_bytes;
  out.line("bytes", bytes(counts.stored_bytes) + " stored, "
                      + bytes(counts.loaded_bytes) + " loaded");
  out.line("compared", bytes(sum(compared)) + ": " + bytes(compared[0])
                         + " loaded, " + bytes(compared[1])
                         + " found on the device, " + bytes(compared[2])
                         + " at the end of requests");
  out.line("mismatches", grouped(what.all_mismatches()));
  if (what.first_mismatch)
    out.line("  first", to_string(*what.first_mismatch));
}

void write_jobs(page& out, const report& what) {
  const auto& counts = what.counts;
  const auto& now = what.runtime;
  out.line("jobs", grouped(now.store_jobs) + " stores, "
                     + grouped(now.load_jobs) + " loads, "
                     + grouped(now.failed_jobs) + " failed; "
                     + grouped(now.refused_stores) + " offers refused");
  out.line("host pool", grouped(what.slots) + " slots of "
                          + bytes(what.slot_bytes) + ", "
                          + grouped(now.evicted_chunks) + " evictions");
  out.line("flushes", grouped(counts.flush_steps) + " steps with "
                        + grouped(counts.flushed_jobs) + " jobs; "
                        + grouped(counts.flush_waits) + " waits, of which "
                        + grouped(counts.flush_delays) + " delayed compute");
  const auto flushes = counts.flush_steps == 0 ? 1 : counts.flush_steps;
  const auto average = static_cast<double>(counts.in_flight_at_flush)
                     / static_cast<double>(flushes);
  out.line("in flight", fixed(average, 1) + " jobs at a flush, at most "
                          + grouped(counts.max_in_flight_at_flush));
  out.line("overlap", grouped(counts.late_completions) + " late completions, "
                        + grouped(counts.loads_overlapping_stores)
                        + " loads beside stores, " + grouped(counts.preemptions)
                        + " preemptions, " + grouped(counts.deferrals)
                        + " deferrals, " + grouped(counts.held_blocks)
                        + " blocks held");
}

void write_end(page& out, const report& what) {
  auto text = grouped(what.left_over());
  for (const auto& [name, value] : ends_of(what))
    if (value > 0)
      text += std::string{", "} + name + " " + grouped(value);
  out.line("left over", text);
  if (!what.first_failure.empty())
    out.line("  first failure", what.first_failure);
}

// -- JSON ---------------------------------------------------------------------

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
          {"delivery", to_word(opts.delivery)},
          {"copy_latency_us", opts.copy_latency_us},
          {"copy_bandwidth", opts.copy_bytes_per_second()}};
}

json requests_json(const tally& counts) {
  auto aborted = json::object();
  for (auto index = std::size_t{0}; index < live_phases; ++index)
    aborted[to_word(static_cast<phase>(index))] = counts.aborted[index];
  return {
    {"added", counts.added},          {"finished", counts.finished},
    {"aborted", sum(counts.aborted)}, {"aborted_while", aborted},
    {"preempted", counts.preempted},  {"ignored", counts.ignored},
    {"revisits", counts.revisits},    {"output_tokens", counts.output_tokens}};
}

json prefix_json(const report& what) {
  const auto& counts = what.counts;
  return {
    {"tokens", counts.prompt_tokens},
    {"device", counts.device_tokens},
    {"loaded", counts.loaded_tokens},
    {"recomputed", counts.prompt_tokens - hit_tokens(counts)},
    {"hit_rate", ratio(hit_tokens(counts), counts.prompt_tokens)},
    {"ideal_hit_rate", ratio(what.ideal.hit_tokens, what.ideal.prompt_tokens)}};
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
                  {"compared", sum(what.compared_bytes)},
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

} // namespace

std::uint64_t report::all_mismatches() const noexcept {
  return sum(mismatches);
}

std::uint64_t report::left_over() const noexcept {
  auto res = std::uint64_t{0};
  for (const auto& entry : ends_of(*this))
    res += entry.second;
  return res;
}

int report::exit_code() const noexcept {
  if (interrupted)
    return 130;
  return all_mismatches() > 0 || left_over() > 0 ? 1 : 0;
}

std::string to_text(const report& what) {
  auto out = page{};
  const auto& counts = what.counts;
  const auto& times = what.times;
  out.line("trace", what.opts.trace + ", " + grouped(what.rows) + " rows"
                      + (what.interrupted ? " (interrupted)" : ""));
  out.line("simulated", fixed(static_cast<double>(counts.simulated) / 1e9, 1)
                          + " s, " + grouped(counts.steps) + " steps, in "
                          + fixed(times.wall_seconds, 1) + " s");
  write_requests(out, what);
  write_bytes(out, what);
  write_jobs(out, what);
  out.line("runtime",
           "per step p50 " + fixed(percentile(times.step_ns, 0.5), 1)
             + " us, p99 " + fixed(percentile(times.step_ns, 0.99), 1)
             + " us, max " + fixed(percentile(times.step_ns, 1), 1) + " us");
  write_end(out, what);
  return out.take();
}

std::string to_json(const report& what) {
  const auto& times = what.times;
  auto left = json::object();
  for (const auto& [name, value] : ends_of(what))
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
                  {"timing",
                   {{"wall_seconds", times.wall_seconds},
                    {"step_us_p50", percentile(times.step_ns, 0.5)},
                    {"step_us_p99", percentile(times.step_ns, 0.99)},
                    {"step_us_max", percentile(times.step_ns, 1)}}}};
  return res.dump(2) + "\n";
}

} // namespace kvtide::replay
