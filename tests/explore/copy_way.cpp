// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/copy_way.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::explore {

namespace {

std::vector<copy_way> make_all() {
  auto out = std::vector<copy_way>{};
  out.push_back({"desk", "a model of a copy engine"});
  const auto add
    = [&out](const char* name, const char* about, copy_path path) -> copy_way& {
    auto& added = out.emplace_back(copy_way{name, about});
    added.cuda = true;
    added.path = path;
    return added;
  };
  add("cuda_batch", "the CUDA engine, batched copies", copy_path::batch);
  add("cuda_plain", "the CUDA engine, one call per fragment", copy_path::plain);
  add("cuda_kernel", "the CUDA engine, copies by a kernel", copy_path::kernel);
  auto& host = add("cuda_host_fence",
                   "the CUDA engine, the host waits for "
                   "fences",
                   copy_path::batch);
  host.fences = fence_wait::host;
  // Fragments of the explorer are of 32 bytes or a few times that.
  auto& narrow = add("cuda_narrow",
                     "the CUDA engine, every fragment is cut and "
                     "everything waits for room",
                     copy_path::batch);
  narrow.slice_bytes = 24;
  narrow.bytes_in_flight = 48;
  auto& host_narrow = add("cuda_narrow_host_fence",
                          "the same by a kernel, and the host waits "
                          "for fences",
                          copy_path::kernel);
  host_narrow.fences = fence_wait::host;
  host_narrow.slice_bytes = 40;
  host_narrow.bytes_in_flight = 40;
  auto& wide = add("cuda_streams",
                   "the CUDA engine, three streams in each "
                   "direction",
                   copy_path::plain);
  wide.streams_per_direction = 3;
  wide.slice_bytes = 64;
  wide.bytes_in_flight = 128;
  auto& pageable = add("cuda_pageable",
                       "the CUDA engine, a pool that is not "
                       "pinned",
                       copy_path::batch);
  pageable.pinned = false;
  pageable.slice_bytes = 64;
  pageable.bytes_in_flight = 128;
  return out;
}

} // namespace

const std::vector<copy_way>& all_copy_ways() {
  static const auto made = make_all();
  return made;
}

const copy_way* find_copy_way(const std::string& name) {
  const auto& all = all_copy_ways();
  const auto found = std::find_if(
    all.begin(), all.end(), [&](const copy_way& x) { return x.name == name; });
  return found != all.end() ? &*found : nullptr;
}

const copy_way& copy_way_of(const std::string& name, std::uint64_t seed) {
  const auto& all = all_copy_ways();
  if (name == cuda_in_turn)
    return all[1 + seed % (all.size() - 1)];
  return *find_copy_way(name);
}

} // namespace kvtide::explore
