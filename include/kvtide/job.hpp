// SPDX-License-Identifier: Apache-2.0

/// @file
/// A job: one store or load of some chunks of one request.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kvtide {

enum class job_kind : std::uint8_t {
  /// GPU to host.
  store,
  /// Host to GPU.
  load,
};

/// One chunk of a job. Always whole rows, never parallel lists.
struct job_row {
  chunk_key key;
  /// Where the chunk lies in each rank's host pool.
  slot_id slot = 0;
  /// Index of the chunk among the request's chunks of this group.
  std::uint32_t chunk = 0;
  /// `blocks_per_chunk` ids; `no_block` means that this part of the chunk is
  /// not copied.
  std::vector<block_id> blocks;
};

/// The rows of a job. Never change once they are made, so that all who hear of
/// the job share them: a copy costs a pointer. Safe to read on any thread.
class job_rows {
public:
  job_rows() = default;

  // NOLINTNEXTLINE(google-explicit-constructor): rows are rows.
  job_rows(std::vector<job_row> rows) : size_(rows.size()) {
    auto all = std::make_shared<const std::vector<job_row>>(std::move(rows));
    rows_ = std::shared_ptr<const job_row[]>{all, all->data()};
  }

  /// Takes rows that lie in one allocation already.
  /// @pre `rows` has `size` of them
  job_rows(std::shared_ptr<const job_row[]> rows, std::size_t size) noexcept
    : rows_(std::move(rows)), size_(size) {
    // nop
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return rows_ ? size_ : 0; // Rows that were moved away leave none.
  }

  [[nodiscard]] bool empty() const noexcept {
    return size() == 0;
  }

  [[nodiscard]] const job_row* begin() const noexcept {
    return rows_.get();
  }

  [[nodiscard]] const job_row* end() const noexcept {
    return begin() + size();
  }

  /// @pre `index < size()`
  [[nodiscard]] const job_row& operator[](std::size_t index) const noexcept {
    return rows_[static_cast<std::ptrdiff_t>(index)];
  }

private:
  std::shared_ptr<const job_row[]> rows_;
  std::size_t size_ = 0;
};

struct job {
  job_id id = 0;
  job_kind kind = job_kind::store;
  request_id request = 0;
  /// Groups in configured order, chunks ascending inside a group.
  job_rows rows;
};

/// How a job ended on one rank.
enum class job_status : std::uint8_t {
  /// All bytes were copied.
  done,
  /// The copy ended without being complete; no copy is running any more.
  failed,
  /// The copy missed its deadline and may still be running.
  late,
  /// A copy that had been reported `late` has ended since.
  drained,
};

} // namespace kvtide
