// SPDX-License-Identifier: Apache-2.0

/// @file
/// What must hold where compute, copies and plans meet, and whom to blame if it
/// does not.

#include "tests/explore/cells.hpp"
#include "tests/explore/shadow.hpp"

#include <algorithm>

namespace kvtide::explore {

namespace {

bool names_key(const job& work, const job_row& wanted) {
  return std::any_of(
    work.rows.begin(), work.rows.end(),
    [&wanted](const job_row& row) { return row.key == wanted.key; });
}

} // namespace

// -- plans --------------------------------------------------------------------

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

// -- compute ------------------------------------------------------------------

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

// -- copies -------------------------------------------------------------------

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

} // namespace kvtide::explore
