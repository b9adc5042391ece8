// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/batch.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace kvtide::bench {

batch make_batch(job_kind kind, both_sides where, std::uint64_t fragment_bytes,
                 std::uint64_t count, std::uint64_t jobs) {
  auto out = batch{};
  out.kind = kind;
  out.where = where;
  out.bytes = fragment_bytes * count;
  out.jobs = std::min(jobs, count);
  // Twice the room, so that neighbours in a batch are seldom neighbours in
  // memory.
  auto places = std::vector<std::uint64_t>(2 * count);
  std::iota(places.begin(), places.end(), std::uint64_t{0});
  std::shuffle(places.begin(), places.end(), std::mt19937_64{1});
  out.fragments.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto* block = where.blocks + places[i] * fragment_bytes;
    auto* slot = where.slots + i * fragment_bytes;
    out.fragments.push_back(
      kind == job_kind::store
        ? gpu::fragment{slot, block, fragment_bytes, 0, 0}
        : gpu::fragment{block, slot, fragment_bytes, 0, 0});
  }
  return out;
}

void append_jobs(const batch& what, std::vector<gpu::copy_job>& out) {
  const auto count = what.fragments.size();
  for (std::uint64_t job = 0; job < what.jobs; ++job) {
    auto made = gpu::copy_job{};
    made.kind = what.kind;
    // The directions have slots of their own: no order between them.
    made.slots = {
      static_cast<slot_id>(2 * job + (what.kind == job_kind::store ? 0u : 1u))};
    const auto at = [&](std::uint64_t n) {
      return what.fragments.begin()
           + static_cast<std::ptrdiff_t>(n * count / what.jobs);
    };
    made.fragments.assign(at(job), at(job + 1));
    out.push_back(std::move(made));
  }
}

} // namespace kvtide::bench
