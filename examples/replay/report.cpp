// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/report.hpp"

#include <algorithm>
#include <numeric>

namespace kvtide::replay {

namespace {

template <class Range>
std::uint64_t sum(const Range& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

double ratio(token_count part, token_count whole) {
  return whole == 0 ? 0.0
                    : static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

std::uint64_t tally::all_aborted() const noexcept {
  return sum(aborted);
}

double timing::step_us(double share) const noexcept {
  if (step_ns.empty())
    return 0;
  const auto last = static_cast<double>(step_ns.size() - 1);
  const auto chosen = step_ns[static_cast<std::size_t>(last * share)];
  return static_cast<double>(chosen) / 1e3;
}

double timing::share(std::chrono::nanoseconds part) const noexcept {
  const auto seconds = std::chrono::duration<double>{part}.count();
  return wall_seconds > 0 ? std::min(seconds / wall_seconds, 1.0) : 0.0;
}

std::uint64_t report::all_compared_bytes() const noexcept {
  return sum(compared_bytes);
}

std::uint64_t report::all_mismatches() const noexcept {
  return sum(mismatches);
}

double report::hit_rate() const noexcept {
  return ratio(counts.hit_tokens(), counts.prompt_tokens);
}

double report::ideal_hit_rate() const noexcept {
  return ratio(ideal.hit_tokens, ideal.prompt_tokens);
}

std::optional<double> report::copy_bytes_per_second() const noexcept {
  const auto seconds = std::chrono::duration<double>{copies.time}.count();
  if (copies.bytes == 0 || seconds <= 0)
    return std::nullopt;
  return static_cast<double>(copies.bytes) / seconds;
}

std::optional<double> report::copy_to_memcpy() const noexcept {
  const auto rate = copy_bytes_per_second();
  if (!rate || memcpy_bytes_per_second <= 0)
    return std::nullopt;
  return *rate / memcpy_bytes_per_second;
}

std::vector<std::pair<const char*, std::uint64_t>> report::leftovers() const {
  return {{"tracked_requests", runtime.tracked_requests},
          {"jobs_in_flight", runtime.jobs_in_flight + left.jobs_at_shutdown},
          {"pinned_slots", runtime.pinned_slots},
          {"held_slots", runtime.held_slots},
          {"writing_slots", runtime.writing_slots},
          {"quarantined_slots", runtime.quarantined_slots},
          {"watched_blocks", runtime.watched_blocks},
          {"sliding_entries", runtime.sliding_entries},
          {"engine_requests", left.requests},
          {"engine_blocks", left.blocks},
          {"reserved_blocks", left.reserved},
          {"order_errors", runtime.order_errors},
          {"failed_calls", failed_calls}};
}

std::uint64_t report::left_over() const {
  auto res = std::uint64_t{0};
  for (const auto& entry : leftovers())
    res += entry.second;
  return res;
}

int report::exit_code() const {
  if (interrupted)
    return 130;
  return all_mismatches() > 0 || left_over() > 0 ? 1 : 0;
}

} // namespace kvtide::replay
