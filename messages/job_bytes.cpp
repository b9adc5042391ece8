// SPDX-License-Identifier: Apache-2.0

#include "messages/job_bytes.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <span>
#include <utility>

// A list is the number of its jobs and the jobs. A job is a byte of flags, what
// the flags say, and runs. A run is rows of one shape whose chunks follow one
// another: a byte of flags, what the flags say, then the slots of all rows, the
// blocks of all rows, and the hashes of all rows.
//
// Everything that repeats or counts up takes no bytes, and the rest is written
// as what it is off the forecast. Slots and blocks without order are packed
// with as many bits as the widest of them needs.

namespace kvtide {

namespace {

// -- flags of a job -----------------------------------------------------------

constexpr std::uint8_t kind_bits = 0x03;
constexpr std::uint8_t other_id = 0x04;
constexpr std::uint8_t other_request = 0x08;
constexpr int runs_shift = 4;
/// As many runs or more are told apart from the flags.
constexpr std::size_t many_runs = 0x0F;

/// What stands for a kind that does not exist.
constexpr std::uint8_t no_kind = 3;

std::uint8_t bits_of(job_kind kind) noexcept {
  return kind == job_kind::store ? 0 : kind == job_kind::load ? 1 : no_kind;
}

// -- flags of a run -----------------------------------------------------------

constexpr std::uint8_t many_rows = 0x01;
constexpr std::uint8_t other_group = 0x02;
constexpr std::uint8_t other_model = 0x04;
constexpr std::uint8_t other_hash_bytes = 0x08;
constexpr std::uint8_t other_row_blocks = 0x10;
constexpr std::uint8_t other_chunk = 0x20;
constexpr std::uint8_t packed_slots = 0x40;
constexpr std::uint8_t packed_blocks = 0x80;

// -- limits that keep a result small beside its bytes -------------------------

/// Rows with shorter hashes are runs of their own: each row of a longer run
/// takes as many bytes or more.
constexpr std::size_t shortest_hash_in_runs = 8;

/// More blocks than these per byte of hash are packed even if they count up.
constexpr std::size_t counted_blocks_per_byte = 8;

bool may_count_blocks(std::size_t row_blocks, std::size_t hash_bytes) noexcept {
  return row_blocks <= 1 || row_blocks / counted_blocks_per_byte < hash_bytes;
}

// -- runs ---------------------------------------------------------------------

/// How many rows from `first` on make a run.
std::size_t run_length(const job_row* first, const job_row* end) noexcept {
  std::size_t result = 1;
  if (first->key.hash.size() < shortest_hash_in_runs)
    return result;
  for (const auto* x = first + 1; x != end; ++x, ++result)
    if (x->key.group != first->key.group || x->key.model != first->key.model
        || x->key.hash.size() != first->key.hash.size()
        || x->blocks.size() != first->blocks.size()
        || x->chunk != (x - 1)->chunk + 1)
      break;
  return result;
}

std::size_t count_runs(const job_rows& rows) noexcept {
  std::size_t result = 0;
  for (const auto* x = rows.begin(); x != rows.end(); ++result)
    x += run_length(x, rows.end());
  return result;
}

/// Calls `f` with the slots in order.
template <class F>
void for_each_slot(const job_row* rows, std::size_t count, F f) {
  for (const auto* x = rows; x != rows + count; ++x)
    f(x->slot);
}

/// Calls `f` with the blocks in order.
template <class F>
void for_each_block(const job_row* rows, std::size_t count, F f) {
  for (const auto* x = rows; x != rows + count; ++x)
    for (const auto block : x->blocks)
      f(block);
}

/// What `write_column` needs to know of its numbers.
struct column {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t least = 0;
  std::uint32_t most = 0;
  bool counts_up = true;
  std::size_t size = 0;

  void operator()(std::uint32_t x) noexcept {
    if (size == 0) {
      first = least = most = x;
    } else {
      counts_up = counts_up && x == last + 1;
      least = std::min(least, x);
      most = std::max(most, x);
    }
    last = x;
    ++size;
  }
};

/// Bits of the widest number above the least. One at least, so that numbers
/// take bytes.
int width_of(const column& x) noexcept {
  return std::max(1, static_cast<int>(std::bit_width(x.most - x.least)));
}

} // namespace

// -- writing ------------------------------------------------------------------

void job_writer::write(const std::vector<job>& jobs) {
  out_.number(jobs.size());
  for (const auto& work : jobs)
    write(work);
}

void job_writer::write(const job& work) {
  const auto runs = count_runs(work.rows);
  auto flags = bits_of(work.kind);
  if (work.id != next_.id)
    flags |= other_id;
  if (work.request != next_.request)
    flags |= other_request;
  flags |= static_cast<std::uint8_t>(std::min(runs, many_runs) << runs_shift);
  out_.byte(flags);
  if (runs >= many_runs)
    out_.number(runs);
  if ((flags & other_id) != 0)
    out_.near(work.id, next_.id);
  if ((flags & other_request) != 0)
    out_.near(work.request, next_.request);
  next_.id = work.id + 1;
  next_.request = work.request + 1;
  for (const auto* x = work.rows.begin(); x != work.rows.end();) {
    const auto count = run_length(x, work.rows.end());
    write_run(x, count);
    x += count;
  }
}

void job_writer::write_run(const job_row* rows, std::size_t count) {
  const auto& key = rows->key;
  const auto hash_bytes = key.hash.size();
  const auto row_blocks = rows->blocks.size();
  column slots;
  for_each_slot(rows, count, std::ref(slots));
  column blocks;
  for_each_block(rows, count, std::ref(blocks));
  std::uint8_t flags = 0;
  const auto mark = [&flags](bool yes, std::uint8_t flag) {
    flags = static_cast<std::uint8_t>(yes ? flags | flag : flags);
    return yes;
  };
  mark(count > 1, many_rows);
  mark(key.group != next_.group, other_group);
  mark(key.model != next_.model, other_model);
  mark(hash_bytes != next_.hash_bytes, other_hash_bytes);
  mark(row_blocks != next_.row_blocks, other_row_blocks);
  mark(rows->chunk != next_.chunk, other_chunk);
  mark(!slots.counts_up, packed_slots);
  mark(!blocks.counts_up || !may_count_blocks(row_blocks, hash_bytes),
       packed_blocks);
  out_.byte(flags);
  if ((flags & many_rows) != 0)
    out_.number(count);
  if ((flags & other_group) != 0)
    out_.number(key.group);
  if ((flags & other_model) != 0)
    out_.fixed(key.model);
  if ((flags & other_hash_bytes) != 0)
    out_.byte(static_cast<std::uint8_t>(hash_bytes));
  if ((flags & other_row_blocks) != 0)
    out_.number(row_blocks);
  if ((flags & other_chunk) != 0)
    out_.near(rows->chunk, next_.chunk);
  const auto write_column
    = [this](const column& x, bool packed, std::uint32_t& next, auto for_each) {
        if (x.size == 0)
          return;
        out_.near(packed ? x.least : x.first, next);
        next = x.last + 1;
        if (!packed)
          return;
        const auto width = width_of(x);
        out_.byte(static_cast<std::uint8_t>(width));
        auto bits = bit_writer{out_, width};
        for_each([&](std::uint32_t y) { bits.put(y - x.least); });
        bits.close();
      };
  write_column(slots, (flags & packed_slots) != 0, next_.slot,
               [&](auto f) { for_each_slot(rows, count, f); });
  write_column(blocks, (flags & packed_blocks) != 0, next_.block,
               [&](auto f) { for_each_block(rows, count, f); });
  for (const auto* x = rows; x != rows + count; ++x)
    out_.raw(x->key.hash.data(), hash_bytes);
  next_.group = key.group;
  next_.model = key.model;
  next_.hash_bytes = hash_bytes;
  next_.row_blocks = row_blocks;
  next_.chunk = rows[count - 1].chunk + 1;
}

// -- reading ------------------------------------------------------------------

std::vector<job> job_reader::read() {
  std::vector<job> result;
  const auto count = in_.count();
  result.reserve(count);
  for (std::size_t i = 0; i < count && !in_.failed(); ++i)
    result.push_back(read_job());
  if (in_.failed())
    result.clear();
  return result;
}

job job_reader::read_job() {
  job result;
  const auto flags = in_.byte();
  const auto kind = flags & kind_bits;
  if (kind > 1)
    in_.fail();
  result.kind = kind == 0 ? job_kind::store : job_kind::load;
  auto runs = std::size_t{flags} >> runs_shift;
  if (runs == many_runs)
    runs = in_.count();
  result.id = next_.id;
  if ((flags & other_id) != 0)
    result.id = in_.near(next_.id);
  result.request = next_.request;
  if ((flags & other_request) != 0)
    result.request = in_.near(next_.request);
  next_.id = result.id + 1;
  next_.request = result.request + 1;
  std::vector<job_row> rows;
  for (; runs > 0 && !in_.failed(); --runs)
    read_run(rows);
  if (!rows.empty())
    result.rows = std::move(rows);
  return result;
}

void job_reader::read_run(std::vector<job_row>& rows) {
  const auto flags = in_.byte();
  const auto has = [flags](std::uint8_t flag) { return (flags & flag) != 0; };
  const auto number = [this]() -> std::uint32_t {
    const auto x = in_.number();
    if (x > UINT32_MAX)
      in_.fail();
    return static_cast<std::uint32_t>(x);
  };
  const auto count = has(many_rows) ? in_.count() : std::size_t{1};
  if (has(other_group))
    next_.group = number();
  if (has(other_model))
    next_.model = in_.fixed();
  if (has(other_hash_bytes))
    next_.hash_bytes = in_.byte();
  if (has(other_row_blocks))
    next_.row_blocks = number();
  if (has(other_chunk))
    next_.chunk = in_.near(next_.chunk);
  const auto hash_bytes = next_.hash_bytes;
  const auto row_blocks = next_.row_blocks;
  const auto left = in_.remaining();
  if (hash_bytes > prefix_hash::max_bytes || count == 0
      || (count > 1 && hash_bytes < shortest_hash_in_runs)
      || count * hash_bytes > left
      || (has(packed_blocks) ? row_blocks > left * 8 / count
                             : !may_count_blocks(row_blocks, hash_bytes)))
    in_.fail();
  if (in_.failed())
    return;
  const auto first = rows.size();
  rows.resize(first + count);
  const auto all = std::span{rows}.subspan(first);
  const auto read_column
    = [this](bool packed, std::uint32_t& next, auto for_each) {
        const auto least = in_.near(next);
        next = least;
        if (!packed)
          return for_each([&](std::uint32_t& x) { x = next++; });
        const auto width = int{in_.byte()};
        if (width < 1 || width > 32)
          return in_.fail();
        auto bits = bit_reader{in_, width};
        for_each([&](std::uint32_t& x) {
          x = least + bits.get();
          next = x + 1;
        });
      };
  read_column(has(packed_slots), next_.slot, [&](auto f) {
    for (auto& x : all)
      f(x.slot);
  });
  if (row_blocks > 0)
    read_column(has(packed_blocks), next_.block, [&](auto f) {
      for (auto& x : all) {
        x.blocks.resize(row_blocks);
        std::for_each(x.blocks.begin(), x.blocks.end(), f);
      }
    });
  for (auto& x : all) {
    x.key.group = next_.group;
    x.key.model = next_.model;
    x.chunk = next_.chunk++;
    if (const auto* hash = in_.raw(hash_bytes))
      x.key.hash = {hash, hash_bytes};
  }
}

// -- size ---------------------------------------------------------------------

std::size_t most_bytes_of(const job& work) noexcept {
  constexpr std::size_t wide = 10;  // The longest number of 64 bits, ...
  constexpr std::size_t narrow = 5; // ... and of 32.
  std::size_t result = 1 + wide + 2 * wide; // Flags, runs, id and request.
  for (const auto& x : work.rows)
    result += 1 + 4 * narrow + sizeof(x.key.model) + 1 // Shape of a run.
            + 2 * (narrow + 1 + sizeof(slot_id))       // Ends of two columns.
            + x.blocks.size() * sizeof(block_id) + x.key.hash.size();
  return result;
}

} // namespace kvtide
