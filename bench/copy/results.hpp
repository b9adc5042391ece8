// SPDX-License-Identifier: Apache-2.0

/// @file
/// What bench-copy found, for people and for programs.

#pragma once

#include "kvtide/error.hpp"

#include "bench/copy/options.hpp"
#include "bench/copy/quantiles.hpp"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace kvtide::bench {

/// On what the numbers were taken.
struct run_facts {
  std::string command;
  /// UTC.
  std::string date;
  /// The host's processor.
  std::string processor;
  unsigned int cores = 0;
  /// "host" or "cuda".
  std::string device;
  /// Of a GPU, else empty or zero; as in `gpu::device_facts`.
  std::string device_name;
  std::string pci_bus_id;
  int driver_version = 0;
  int runtime_version = 0;
  /// E.g. "32.0 GT/s PCIe x16", as the system says right behind the copies;
  /// empty if it does not.
  std::string link;
  /// What the device could do at most.
  std::string widest_link;
};

/// How one way to move a batch did. Rates are in bytes per second, both
/// directions together; ratios are those of rates in the same round.
struct copy_row {
  direction where_to = direction::store;
  std::uint64_t fragment_bytes = 0;
  /// Per direction.
  std::uint64_t fragments = 0;
  std::uint64_t jobs = 0;
  /// "engine", or the CUDA engine's path.
  std::string way;
  /// By one copy of the same bytes (per direction).
  quantiles by_one;
  /// By one copy per fragment.
  quantiles by_each;
  quantiles rate;
  quantiles rate_of_one;
  quantiles rate_of_each;
};

/// What a decode-like loop felt. In seconds.
struct decode_row {
  /// What ran beside it.
  std::string load;
  std::size_t iterations = 0;
  quantiles iteration;
  /// Of the small upload at the start of each iteration.
  quantiles upload;
  /// What ran beside it, in bytes per second, and by one large copy alone.
  double load_rate = 0;
  double load_by_one = 0;
};

struct results {
  run_facts facts;
  std::uint32_t rounds = 0;
  std::vector<copy_row> copies;
  std::vector<decode_row> decode;
};

/// Ratios first.
void print_table(const results& what, std::ostream& out);

void print_json(const results& what, std::ostream& out);

/// @returns `ec::invalid_argument` with what the system says
/// Asked before anything is measured.
/// @param file may be empty, or `-`
[[nodiscard]] error can_be_written(const std::string& file);

/// @param file `-` is standard output
[[nodiscard]] error write_json(const results& what, const std::string& file);

} // namespace kvtide::bench
