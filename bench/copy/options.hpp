// SPDX-License-Identifier: Apache-2.0

/// @file
/// What bench-copy can be asked for.

#pragma once

#include "kvtide/copy_path.hpp"
#include "kvtide/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::bench {

enum class device_choice : std::uint8_t {
  /// The GPU if there is one, else the host.
  automatic,
  host,
  cuda,
};

enum class direction : std::uint8_t {
  /// From blocks to slots: device to host.
  store,
  /// From slots to blocks: host to device.
  load,
  /// As many bytes each way, at the same time.
  both,
};

[[nodiscard]] const char* name_of(direction value) noexcept;

[[nodiscard]] const char* name_of(copy_path value) noexcept;

/// E.g. "64 KiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

struct copy_options {
  device_choice device = device_choice::automatic;
  /// As CUDA numbers them.
  int gpu = 0;
  /// Bytes per fragment.
  std::vector<std::uint64_t> fragments;
  /// Fragments per batch; 0: as many as make `batch_bytes`.
  std::vector<std::uint64_t> counts;
  /// Per direction: no batch has more.
  std::uint64_t batch_bytes = 64u << 20;
  /// Jobs that a batch is cut into.
  std::vector<std::uint64_t> jobs;
  std::vector<direction> directions;
  /// Of the CUDA engine.
  std::vector<copy_path> paths;
  std::uint32_t rounds = 21;
  bool copies = true;
  bool decode = true;
  /// Iterations of the decode loop per load and round.
  std::uint32_t decode_iterations = 200;
  std::uint32_t decode_rounds = 10;
  /// Says that it works, not how fast: few bytes, nothing is measured at start.
  bool quick = false;
  /// Fails if the host engine is slower than promised.
  bool check = false;
  bool help = false;
  /// Where the results go as JSON; empty: nowhere.
  std::string json_file;
  /// As it was called.
  std::string command;
};

[[nodiscard]] const char* help_text() noexcept;

/// @returns `ec::invalid_argument` with a sentence that says what is wrong
[[nodiscard]] result<copy_options> parse_options(int argc,
                                                 const char* const* argv);

} // namespace kvtide::bench
