// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

namespace kvtide::replay {

namespace {

// 1234567 -> "1,234,567".
template <class Number>
std::string grouped(Number value) {
  auto res = std::to_string(value);
  for (auto at = res.size(); at > 3;) {
    at -= 3;
    res.insert(at, 1, ',');
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
            + grouped(counts.all_aborted()) + " aborted";
  auto phases = std::string{};
  for (auto index = std::size_t{0}; index < live_phases; ++index)
    if (counts.aborted[index] > 0)
      phases += (phases.empty() ? "" : ", ") + grouped(counts.aborted[index])
              + " " + to_word(static_cast<phase>(index));
  text += phases.empty() ? "" : " (" + phases + ")";
  text += ", " + grouped(counts.preempted) + " preempted";
  if (counts.ignored > 0)
    text += ", " + grouped(counts.ignored) + " too long";
  if (counts.revisits > 0)
    text += "; " + grouped(counts.revisits) + " texts asked for again";
  out.line("requests", text);
  out.line("prompt tokens",
           grouped(counts.prompt_tokens) + " at first admission");
  // No prompt at all is no division by zero.
  const auto prompts
    = static_cast<double>(std::max<token_count>(counts.prompt_tokens, 1));
  const auto part = [&](token_count tokens) {
    return grouped(tokens) + " ("
         + percent(static_cast<double>(tokens) / prompts) + ")";
  };
  out.line("  on device", part(counts.device_tokens));
  out.line("  loaded", part(counts.loaded_tokens));
  out.line("  recomputed", part(counts.prompt_tokens - counts.hit_tokens()));
  out.line("token hit rate", percent(what.hit_rate())
                               + ", ideal (unlimited cache) "
                               + percent(what.ideal_hit_rate()));
}

void write_bytes(page& out, const report& what) {
  const auto& counts = what.counts;
  const auto& compared = what.compared_bytes;
  out.line("bytes", bytes(counts.stored_bytes) + " stored, "
                      + bytes(counts.loaded_bytes) + " loaded");
  out.line("compared", bytes(what.all_compared_bytes()) + ": "
                         + bytes(compared[0]) + " loaded, " + bytes(compared[1])
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

void write_times(page& out, const report& what) {
  const auto& times = what.times;
  const auto& spent = times.runtime;
  const auto real = !what.opts.simulated();
  out.line("runtime", "per step p50 " + fixed(times.step_us(0.5), 1)
                        + " us, p99 " + fixed(times.step_us(0.99), 1)
                        + " us, max " + fixed(times.step_us(1), 1) + " us");
  out.line("runtime share",
           percent(times.share(spent.all()))
             + " of wall time: " + percent(times.share(spent.calls))
             + " calls, " + percent(times.share(spent.news)) + " news, "
             + percent(times.share(spent.waits))
             + (real ? " waiting for copies" : " moving simulated time"));
  const auto rate = [](double value) {
    return bytes(static_cast<std::uint64_t>(value)) + "/s";
  };
  const auto reached = what.copy_bytes_per_second();
  if (!reached)
    return out.line("copies", "none");
  const auto ratio = what.copy_to_memcpy();
  out.line("copies",
           (ratio ? percent(*ratio) + " of memcpy: " : std::string{})
             + rate(*reached)
             + (ratio ? ", memcpy " + rate(what.memcpy_bytes_per_second)
                          + ", in fragments of "
                          + bytes(what.opts.shape.fragment_bytes())
                      : std::string{}));
}

std::string text_of(const outage& what) {
  const auto seconds = [](outage::moment from, outage::moment to) {
    return fixed(std::chrono::duration<double>(to - from).count(), 2) + " s";
  };
  auto text = std::string{what.process ? "process" : "link"};
  if (what.process && what.link)
    text += " and link";
  if (!what.back)
    return text + " away until the end";
  text += " away " + seconds(what.lost, *what.back)
        + (what.same_life ? ", same life" : ", new life");
  return text
       + (what.hit
            ? ", cache used again after " + seconds(*what.back, *what.hit)
            : std::string{", cache not used since"});
}

void write_outages(page& out, const report& what) {
  if (!what.opts.has_remote_ranks())
    return;
  using milliseconds = std::chrono::duration<double, std::milli>;
  const auto& times = what.times.runtime;
  out.line("longest wait",
           fixed(milliseconds{times.longest}.count(), 1) + " ms in "
             + times.longest_call + "; between two steps "
             + fixed(milliseconds{what.times.longest_gap}.count(), 1) + " ms");
  out.line("ranks away", grouped(what.outages.size()) + " times, "
                           + grouped(what.counts.steps_without_cache)
                           + " steps without the cache, "
                           + grouped(what.runtime.late_messages)
                           + " late messages");
  for (const auto& one : what.outages)
    out.line("  rank " + std::to_string(one.rank), text_of(one));
}

void write_end(page& out, const report& what) {
  auto text = grouped(what.left_over());
  for (const auto& [name, value] : what.leftovers())
    if (value > 0)
      text += std::string{", "} + name + " " + grouped(value);
  out.line("left over", text);
  if (!what.first_failure.empty())
    out.line("  first failure", what.first_failure);
}

} // namespace

std::string to_text(const report& what) {
  auto out = page{};
  const auto& counts = what.counts;
  const auto& times = what.times;
  out.line("trace", what.opts.trace + ", " + grouped(what.rows) + " rows"
                      + (what.interrupted ? " (interrupted)" : ""));
  out.line("simulated", fixed(static_cast<double>(counts.simulated) / 1e9, 1)
                          + " s, " + grouped(counts.steps) + " steps, in "
                          + fixed(times.wall_seconds, 1) + " s");
  for (const auto& note : what.notes)
    out.line("device", note);
  write_requests(out, what);
  write_bytes(out, what);
  write_jobs(out, what);
  write_times(out, what);
  write_outages(out, what);
  write_end(out, what);
  return out.take();
}

} // namespace kvtide::replay
