// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/gpu_lane.hpp"

#include "examples/replay/pattern.hpp"
#include "examples/replay/replay_failure.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kvtide::replay {

namespace {

constexpr std::size_t staging_bytes = std::size_t{4} << 20;

// Pieces begin at such addresses, as the pattern is written in words.
constexpr std::size_t alignment = 64;

gpu::compute_stream make_stream(int device) {
  auto made = gpu::compute_stream::make(device);
  if (!made)
    throw bad_configuration{made.failure().text};
  return std::move(made).value();
}

void check(const error& what) {
  if (what.code != ec::none)
    throw replay_failure{what.text};
}

} // namespace

gpu_lane::gpu_lane(int device)
  : stream_(make_stream(device)), written_(staging_bytes) {
  // nop
}

void gpu_lane::wait(const fence& until) {
  check(stream_.wait(until));
}

void gpu_lane::write(std::byte* piece, std::size_t first, std::size_t last,
                     std::uint64_t seed) {
  // Nothing that is still read by a copy may move or be written.
  if (last > written_.size() - used_) {
    finish();
    written_.resize(std::max(written_.size(), last));
  }
  auto* source = written_.data() + used_;
  fill_pattern(source, first, last, seed);
  check(stream_.copy_to_device(piece + first, source + first, last - first));
  const auto next = used_ + (last + alignment - 1) / alignment * alignment;
  used_ = std::min(next, written_.size());
}

const std::byte* gpu_lane::read(const std::byte* piece, std::size_t first,
                                std::size_t last) {
  read_.resize(std::max(read_.size(), last));
  check(
    stream_.copy_to_host(read_.data() + first, piece + first, last - first));
  finish();
  return read_.data();
}

void gpu_lane::finish() {
  check(stream_.synchronize());
  used_ = 0;
}

} // namespace kvtide::replay
