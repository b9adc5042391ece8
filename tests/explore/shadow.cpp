// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/shadow.hpp"

#include "tests/explore/cells.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvtide::explore {

namespace {

bool same(const job& x, const job& y) {
  return x.kind == y.kind && x.request == y.request
      && std::equal(x.rows.begin(), x.rows.end(), y.rows.begin(), y.rows.end(),
                    [](const job_row& a, const job_row& b) {
                      return a.key == b.key && a.slot == b.slot
                          && a.chunk == b.chunk && a.blocks == b.blocks;
                    });
}

} // namespace

shadow::shadow(std::shared_ptr<const core::layout> shape, text_book& texts,
               findings& found, std::uint32_t ranks, std::uint32_t blocks)
  : shape_(std::move(shape)), texts_(texts), found_(found) {
  ranks_.resize(ranks);
  for (rank_id r = 0; r < ranks; ++r)
    ranks_[r].memory = std::make_unique<rank_memory>(shape_, r, blocks);
}

// -- what the scheduler says --------------------------------------------------

void shadow::planned(rank_id rank, const msg::begin_step& plan) {
  ranks_[rank].begun = plan.step;
  if (!ranks_[rank].first)
    ranks_[rank].first = plan.step;
  for (const auto& work : plan.loads)
    learn(rank, work, plan.step);
  for (const auto& work : plan.flushed_stores)
    learn(rank, work, plan.step);
  const auto [known, is_new] = flushes_.emplace(plan.step, plan.flush);
  if (!is_new && known->second != plan.flush)
    report("S10", "the flush set of step " + std::to_string(plan.step)
                    + " differs between ranks");
  for (auto id : plan.flush)
    flushed_.emplace(id, plan.step);
}

void shadow::planned(rank_id rank, const msg::stores& plan) {
  for (const auto& work : plan.jobs)
    learn(rank, work, plan.step);
}

void shadow::learn(rank_id rank, const job& work, step_id step) {
  const auto& first = ranks_[rank].first;
  if (first && *first <= step)
    ranks_[rank].told.insert(work.id);
  const auto [known, is_new]
    = facts_.emplace(work.id, fact{work, step, resets_});
  if (!is_new && !same(known->second.work, work))
    report("S10", name(work.id) + " differs between ranks");
  if (is_new && work.kind == job_kind::load)
    for (const auto& row : work.rows)
      check_whole(work.id, row);
}

void shadow::check_rest() {
  for (rank_id r = 0; r < ranks_.size(); ++r)
    for (auto id : ranks_[r].told)
      if (facts_.at(id).work.kind == job_kind::store
          && ranks_[r].submitted.count(id) == 0
          && ranks_[r].cut_off.count(id) == 0)
        report("S13", name(id) + " waits on " + name(r)
                        + " for a step that does not come");
}

void shadow::reset() {
  ++resets_;
}

// -- ranks --------------------------------------------------------------------

void shadow::joined(rank_id rank, const std::byte* pool,
                    std::uint64_t slot_bytes) {
  auto& view = ranks_[rank];
  view.pool = pool;
  view.slot_bytes = slot_bytes;
}

void shadow::starts_again(rank_id rank) {
  auto& view = ranks_[rank];
  view.pool = nullptr;
  view.first.reset();
  view.told.clear();
  view.submitted.clear();
  view.cut_off.clear();
  view.copies.clear();
  view.tainted.clear();
  view.writers.clear();
}

void shadow::cut_off(rank_id rank) {
  auto& view = ranks_[rank];
  std::set_difference(view.told.begin(), view.told.end(),
                      view.submitted.begin(), view.submitted.end(),
                      std::inserter(view.cut_off, view.cut_off.end()));
}

void shadow::gave_up(rank_id rank, job_id id) {
  auto& view = ranks_[rank];
  if (view.submitted.count(id) == 0)
    view.cut_off.insert(id);
}

void shadow::ready(rank_id rank, step_id step, bool at_once,
                   const std::function<bool(job_id)>& excused) {
  auto& view = ranks_[rank];
  const auto flush = flushes_.find(step);
  if (flush == flushes_.end())
    return; // A rank that lost its connection begins without a plan.
  for (auto id : flush->second) {
    const auto* fact_ = find(id);
    if (fact_ == nullptr || fact_->kind == job_kind::load
        || view.told.count(id) == 0)
      continue;
    if (view.submitted.count(id) == 0 && view.cut_off.count(id) == 0
        && !excused(id))
      report("S4", "step " + std::to_string(step) + " may compute on "
                     + name(rank) + ", but " + name(id)
                     + " of its flush set was not handed to the device");
    else if (at_once && view.copies.count(id) > 0)
      report("S5", "step " + std::to_string(step) + " may compute on "
                     + name(rank) + " before " + name(id)
                     + " of its flush set has ended");
  }
}

void shadow::enqueued(rank_id rank, step_id step,
                      std::vector<compute_row> rows) {
  auto& view = ranks_[rank];
  view.enqueued = step;
  view.time_passed = false;
  view.stream.push_back({step, std::move(rows)});
}

void shadow::time_passed() {
  for (auto& view : ranks_)
    view.time_passed = true;
}

void shadow::slept() {
  for (rank_id r = 0; r < ranks_.size(); ++r)
    for (const auto& [id, half_made] : ranks_[r].copies)
      report("G8", "sleep was answered as if nothing were in flight, but "
                     + name(id) + " is on " + name(r));
}

void shadow::lose_memory(rank_id rank) {
  auto& view = ranks_[rank];
  for (const auto& [id, half_made] : view.copies)
    report("G8", name(id) + " is in flight on " + name(rank)
                   + " although its memory was unregistered");
  view.memory->spoil();
  view.last_writes.clear();
}

void shadow::compute_starts(rank_id rank) {
  const auto& what = ranks_[rank].stream.front();
  check_against_copies(rank, what);
  check_reads(rank, what);
  write(rank, what, 0);
}

void shadow::compute_ends(rank_id rank) {
  auto& stream = ranks_[rank].stream;
  for (std::uint32_t layer = 1; layer < rank_memory::layers; ++layer)
    write(rank, stream.front(), layer);
  stream.pop_front();
}

void shadow::write(rank_id rank, const compute& what, std::uint32_t layer) {
  auto& memory = *ranks_[rank].memory;
  auto& last = ranks_[rank].last_writes;
  for (const auto& row : what.rows)
    for_tokens(*shape_, row, row.from, row.to,
               [&](group_id g, block_id block, token_count at) {
                 last[block] = what.step;
                 memory.cell(block, layer, at % shape_->groups[g].block_tokens)
                   = memory.value(texts_.prefix(row.request, at), g, layer);
               });
}

// -- copies -------------------------------------------------------------------

void shadow::submitted(rank_id rank, const gpu::copy_job& what) {
  auto& view = ranks_[rank];
  const auto found = facts_.find(what.id);
  if (found == facts_.end())
    return report("S10", "job " + std::to_string(what.id) + " on " + name(rank)
                           + " was planned by nobody");
  if (view.told.count(what.id) == 0)
    return report("S12", name(what.id) + " was handed over on " + name(rank)
                           + ", but planned for an earlier life of it");
  const auto& known = found->second;
  if (!view.submitted.insert(what.id).second)
    report("S4", name(what.id) + " was handed over twice on " + name(rank));
  const auto next_begun = view.begun && *view.begun > known.step;
  if (known.work.kind == job_kind::store && !flushed_in_own_step(what.id)
      && (!view.enqueued || *view.enqueued < known.step
          || (!next_begun && !view.time_passed
              && view.paused_behind != view.enqueued)))
    report("S3", name(what.id) + " was handed over on " + name(rank)
                   + " in its own step");
  view.copies[what.id] = false;
  if (known.work.kind == job_kind::store)
    for (const auto& row : known.work.rows)
      view.writers[row.slot] = what.id;
}

void shadow::fence_asked(rank_id rank, step_id step,
                         const std::vector<job_id>& jobs) {
  const auto& view = ranks_[rank];
  for (auto id : jobs)
    if (view.told.count(id) > 0 && view.submitted.count(id) == 0
        && view.cut_off.count(id) == 0)
      report("S4", "step " + std::to_string(step) + " waits on " + name(rank)
                     + " for " + name(id)
                     + ", which the device was not given yet");
}

void shadow::starts(rank_id rank, job_id id) {
  const auto& what = facts_.at(id);
  check_slots(rank, what);
  check_against_compute(rank, what);
  ranks_[rank].copies[id] = true;
  if (what.work.kind == job_kind::store)
    check_store_source(rank, what);
  else
    check_load_source(rank, what);
}

void shadow::ends(rank_id rank, job_id id, bool ok) {
  auto& view = ranks_[rank];
  const auto found = view.copies.find(id);
  if (found == view.copies.end())
    return; // Of a rank that died.
  const auto& what = facts_.at(id);
  if (ok && what.work.kind == job_kind::store)
    check_store_source(rank, what);
  else if (ok)
    check_load_source(rank, what);
  if (ok)
    view.whole.insert(id);
  view.copies.erase(found);
}

void shadow::reported(rank_id rank, job_id id) {
  const auto& tainted = ranks_[rank].tainted;
  if (const auto found = tainted.find(id); found != tainted.end())
    found_.report(found->second);
}

// -- what the engine is told --------------------------------------------------

void shadow::load_announced(job_id id) {
  for (rank_id r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].whole.count(id) == 0)
      report("S9",
             name(id) + " was announced as done, but is not on " + name(r));
}

void shadow::released(const std::vector<block_id>& blocks) {
  for (rank_id r = 0; r < ranks_.size(); ++r)
    for (const auto& [id, half_made] : ranks_[r].copies)
      if (const auto& work = facts_.at(id).work; work.kind == job_kind::load)
        for (auto block : blocks)
          if (block != no_block && names_block(work, block))
            report("S7", "block " + std::to_string(block)
                           + " was given back while " + name(id)
                           + " may still write it on " + name(r));
}

const job* shadow::find(job_id id) const {
  const auto found = facts_.find(id);
  return found != facts_.end() ? &found->second.work : nullptr;
}

// -- names --------------------------------------------------------------------

bool shadow::flushed_in_own_step(job_id id) const {
  const auto found = flushed_.find(id);
  return found != flushed_.end() && found->second == facts_.at(id).step;
}

std::string shadow::name(job_id id) const {
  const auto* work = find(id);
  if (work == nullptr)
    return "job " + std::to_string(id);
  auto out = (work->kind == job_kind::store ? "store " : "load ")
           + std::to_string(id) + " (";
  for (const auto& row : work->rows)
    out += (&row == work->rows.begin() ? "" : ", ") + texts_.name(row.key);
  return out + ")";
}

std::string shadow::name(rank_id rank) {
  return "rank " + std::to_string(rank);
}

} // namespace kvtide::explore
