// SPDX-License-Identifier: Apache-2.0

/// @file
/// Jobs as few bytes: plans go to ranks of other processes, so what a step
/// costs on the way is mostly the hashes of its keys.

#pragma once

#include "kvtide/job.hpp"

#include "messages/byte_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvtide {

/// What the next job, and the next rows in it, most likely are: both sides
/// count along, and only what differs is written.
struct job_forecast {
  job_id id = 0;
  request_id request = 0;
  group_id group = 0;
  std::uint64_t model = 0;
  std::size_t hash_bytes = 0;
  std::size_t row_blocks = 1;
  std::uint32_t chunk = 0;
  slot_id slot = 0;
  block_id block = 0;
};

/// Writes lists of jobs. All lists of a message belong to one of these, and are
/// read by one `job_reader` in the same order.
class job_writer {
public:
  explicit job_writer(byte_writer& out) : out_(out) {
    // nop
  }

  /// The same lists give the same bytes. A kind that does not exist gives bytes
  /// that no reader takes.
  void write(const std::vector<job>& jobs);

private:
  void write(const job& work);

  void write_run(const job_row* rows, std::size_t count);

  byte_writer& out_;
  job_forecast next_;
};

/// Reads what a `job_writer` wrote.
class job_reader {
public:
  explicit job_reader(byte_reader& in) : in_(in) {
    // nop
  }

  /// Whatever the bytes are, the memory of the result is at most a few dozen
  /// times theirs. Empty once the reader below has failed.
  [[nodiscard]] std::vector<job> read();

private:
  [[nodiscard]] job read_job();

  void read_run(std::vector<job_row>& rows);

  byte_reader& in_;
  job_forecast next_;
};

/// No job list that has `work` in it is longer because of it by more than this.
[[nodiscard]] std::size_t most_bytes_of(const job& work) noexcept;

} // namespace kvtide
