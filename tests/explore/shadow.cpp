// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/shadow.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::explore {

namespace {

bool names_block(const job& work, block_id block) {
  return std::any_of(
    work.rows.begin(), work.rows.end(), [block](const job_row& row) {
      return std::find(row.blocks.begin(), row.blocks.end(), block)
          != row.blocks.end();
    });
}

bool names_key(const job& work, const job_row& wanted) {
  return std::any_of(
    work.rows.begin(), work.rows.end(),
    [&wanted](const job_row& row) { return row.key == wanted.key; });
}

bool same(const job& x, const job& y) {
  return x.kind == y.kind && x.request == y.request
      && std::equal(x.rows.begin(), x.rows.end(), y.rows.begin(), y.rows.end(),
                    [](const job_row& a, const job_row& b) {
                      return a.key == b.key && a.slot == b.slot
                          && a.chunk == b.chunk && a.blocks == b.blocks;
                    });
}

/// Calls `fun(group, block, token inside)` for each token of a row that compute
/// touches between two positions.
template <class Function>
void for_tokens(const core::layout& shape, const compute_row& row,
                token_count from, token_count to, Function fun) {
  for (group_id g = 0; g < row.table.size(); ++g) {
    const auto length = shape.groups[g].block_tokens;
    const auto window = shape.groups[g].window_tokens;
    const auto low = to <= row.from && window > 0
                     ? std::max(from, row.from - window + 1)
                     : from;
    for (auto at = low; at < to; ++at) {
      const auto place = static_cast<std::size_t>(at / length);
      if (place < row.table[g].size() && row.table[g][place] != no_block)
        fun(g, row.table[g][place], at);
    }
  }
}

/// One token of a chunk in one layer of a device block.
struct cell {
  /// Of the block in its row.
  std::size_t index = 0;
  block_id block = 0;
  std::uint32_t layer = 0;
  /// Inside the block.
  token_count at = 0;
  /// What should be there.
  std::uint64_t token = 0;
};

/// Calls `fun(cell)` for all that a row of a job copies.
template <class Function>
void for_cells(const core::layout& shape, const job_row& row,
               const std::vector<std::uint64_t>& tokens, Function fun) {
  const auto length = shape.groups[row.key.group].block_tokens;
  auto x = cell{};
  for (x.index = 0; x.index < row.blocks.size(); ++x.index) {
    x.block = row.blocks[x.index];
    if (x.block == no_block)
      continue;
    for (x.at = 0; x.at < length; ++x.at) {
      x.token = tokens[x.index * static_cast<std::size_t>(length)
                       + static_cast<std::size_t>(x.at)];
      for (x.layer = 0; x.layer < rank_memory::layers; ++x.layer)
        fun(x);
    }
  }
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

/// A chunk that somebody may load is whole on all ranks.
void shadow::check_whole(job_id load, const job_row& row) {
  const fact* last = nullptr;
  auto older = false;
  for (const auto& [id, x] : facts_) {
    if (id >= load || x.work.kind != job_kind::store || !names_key(x.work, row))
      continue;
    older = older || (last != nullptr && last->resets < x.resets);
    last = &x;
  }
  if (last == nullptr)
    return; // Seen where it is read.
  for (rank_id r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].first && ranks_[r].whole.count(last->work.id) == 0)
      report(older ? "S11" : "S9",
             name(load) + " was planned before " + name(last->work.id)
               + " was whole on " + name(r)
               + (older ? ": a store of before a reset was taken for it" : ""));
}

void shadow::check_rest() {
  for (rank_id r = 0; r < ranks_.size(); ++r)
    for (auto id : ranks_[r].told)
      if (facts_.at(id).work.kind == job_kind::store
          && ranks_[r].submitted.count(id) == 0)
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
  view.copies.clear();
  view.tainted.clear();
  view.writers.clear();
}

void shadow::ready(rank_id rank, step_id step, bool at_once) {
  auto& view = ranks_[rank];
  for (auto id : flushes_[step]) {
    const auto* fact_ = find(id);
    if (fact_ == nullptr || fact_->kind == job_kind::load
        || view.told.count(id) == 0)
      continue;
    if (view.submitted.count(id) == 0)
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

void shadow::check_reads(rank_id rank, const compute& what) {
  auto& memory = *ranks_[rank].memory;
  for (const auto& row : what.rows)
    for_tokens(
      *shape_, row, 0, row.from,
      [&](group_id g, block_id block, token_count at) {
        for (std::uint32_t layer = 0; layer < rank_memory::layers; ++layer)
          if (memory.cell(block, layer, at % shape_->groups[g].block_tokens)
              != memory.value(texts_.prefix(row.request, at), g, layer))
            return report(
              "bytes", "step " + std::to_string(what.step) + " on " + name(rank)
                         + " reads wrong bytes for token " + std::to_string(at)
                         + " of request " + std::to_string(row.request)
                         + " in block " + std::to_string(block));
      });
}

/// Whoever computes must not meet a copy on a block.
void shadow::check_against_copies(rank_id rank, const compute& what) {
  auto& view = ranks_[rank];
  for (const auto& [id, half_made] : view.copies) {
    const auto& work = facts_.at(id).work;
    if (facts_.at(id).step > what.step)
      continue; // It waits for this step (S6): checked where it starts.
    for (const auto& row : what.rows) {
      if (work.kind == job_kind::load)
        for_tokens(*shape_, row, 0, row.from,
                   [&, id = id](group_id, block_id block, token_count) {
                     if (names_block(work, block))
                       report("S7", "step " + std::to_string(what.step) + " on "
                                      + name(rank) + " reads block "
                                      + std::to_string(block) + " before "
                                      + name(id) + " has ended");
                   });
      if (work.kind == job_kind::load || half_made)
        for_tokens(*shape_, row, row.from, row.to,
                   [&, id = id](group_id, block_id block, token_count) {
                     if (!names_block(work, block))
                       return;
                     const auto text = "step " + std::to_string(what.step)
                                     + " on " + name(rank) + " writes block "
                                     + std::to_string(block) + " before "
                                     + name(id) + " has ended";
                     if (work.kind == job_kind::load)
                       report("S7", text);
                     else
                       view.tainted.emplace(id, finding{"S5", text});
                   });
    }
  }
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
          || (!next_begun && !view.time_passed)))
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
    if (view.told.count(id) > 0 && view.submitted.count(id) == 0)
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

void shadow::check_store_source(rank_id rank, const fact& what) {
  auto& memory = *ranks_[rank].memory;
  for (const auto& row : what.work.rows) {
    const auto* tokens = texts_.tokens(row.key);
    if (tokens == nullptr)
      return report("S12", name(what.work.id) + " stores an unknown key");
    for_cells(*shape_, row, *tokens, [&](const cell& x) {
      if (memory.cell(x.block, x.layer, x.at)
          != memory.value(x.token, row.key.group, x.layer))
        ranks_[rank].tainted.emplace(what.work.id,
                                     blame_store(rank, what, row, x.block));
    });
  }
}

/// Why does a block not contain what its key says?
finding shadow::blame_store(rank_id rank, const fact& what, const job_row& row,
                            block_id block) const {
  const auto& view = ranks_[rank];
  const auto text = name(what.work.id) + " reads block " + std::to_string(block)
                  + " on " + name(rank) + " for " + texts_.name(row.key) + " ";
  if (!view.stream.empty() && view.stream.front().step <= what.step)
    return {"S6", text + "before step "
                    + std::to_string(view.stream.front().step)
                    + " has computed it"};
  const auto last = view.last_writes.find(block);
  if (shape_->groups[row.key.group].sliding() && last != view.last_writes.end()
      && last->second <= what.step)
    return {"R9", text + "although step " + std::to_string(last->second)
                    + " had given it to somebody else"};
  if (const auto flush = flushed_.find(what.work.id); flush != flushed_.end())
    return {"S5", text + "after step " + std::to_string(flush->second)
                    + ", which flushes it, has written it"};
  return {"S5", text
                  + "after it was reused, or before it was written, and no "
                    "step has flushed it"};
}

void shadow::reported(rank_id rank, job_id id) {
  const auto& tainted = ranks_[rank].tainted;
  if (const auto found = tainted.find(id); found != tainted.end())
    found_.report(found->second);
}

void shadow::check_load_source(rank_id rank, const fact& what) {
  const auto& view = ranks_[rank];
  for (const auto& row : what.work.rows) {
    const auto* tokens = texts_.tokens(row.key);
    if (tokens == nullptr || view.pool == nullptr)
      return report("S12", name(what.work.id) + " loads what nobody stored");
    const auto* slot = view.pool + view.slot_bytes * row.slot;
    for_cells(*shape_, row, *tokens, [&](const cell& x) {
      if (rank_memory::host_cell(*shape_, slot, row.key.group, x.index, x.layer,
                                 x.at)
          != view.memory->value(x.token, row.key.group, x.layer))
        found_.report(blame_load(rank, what, row));
    });
  }
}

/// Why does a slot not contain what its key says?
finding shadow::blame_load(rank_id rank, const fact& what,
                           const job_row& row) const {
  const auto& writers = ranks_[rank].writers;
  const auto text = name(what.work.id) + " reads slot "
                  + std::to_string(row.slot) + " on " + name(rank) + " for "
                  + texts_.name(row.key) + ", ";
  const auto writer = writers.find(row.slot);
  if (writer == writers.end())
    return {"S9", text + "which this rank never stored"};
  const auto& last = facts_.at(writer->second);
  const auto blamed = text + "but " + name(last.work.id);
  if (std::any_of(last.work.rows.begin(), last.work.rows.end(),
                  [&](const job_row& x) {
                    return x.slot == row.slot && x.key == row.key;
                  }))
    return {"S9", blamed + " did not store all of it here"};
  if (last.resets < what.resets)
    return {"S11", blamed + " of before a reset was published"};
  return {"S8", blamed + " has written it since"};
}

void shadow::check_slots(rank_id rank, const fact& what) {
  const auto stores = what.work.kind == job_kind::store;
  for (const auto& [id, half_made] : ranks_[rank].copies) {
    const auto& other = facts_.at(id).work;
    if (!half_made || id == what.work.id
        || (!stores && other.kind == job_kind::load))
      continue;
    for (const auto& x : what.work.rows)
      for (const auto& y : other.rows)
        if (x.slot == y.slot)
          report("S8", name(what.work.id) + " and " + name(id)
                         + " are at the same time on slot "
                         + std::to_string(x.slot) + " of " + name(rank));
  }
}

void shadow::check_against_compute(rank_id rank, const fact& what) {
  if (what.work.kind != job_kind::load)
    return; // What a store reads too early has the wrong content.
  for (const auto& step : ranks_[rank].stream) {
    if (step.step >= what.step)
      return; // Later compute must not touch these blocks: S7 is checked there.
    for (const auto& row : step.rows) {
      const auto check = [&](group_id, block_id block, token_count) {
        if (names_block(what.work, block))
          report("S6", name(what.work.id) + " overwrites block "
                         + std::to_string(block) + " on " + name(rank)
                         + ", which step " + std::to_string(step.step)
                         + " still computes on");
      };
      for_tokens(*shape_, row, 0, row.from, check);
      for_tokens(*shape_, row, row.from, row.to, check);
    }
  }
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
