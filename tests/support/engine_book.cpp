// SPDX-License-Identifier: Apache-2.0

#include "tests/support/engine_book.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::test {

engine_book::engine_book(std::shared_ptr<const core::layout> shape)
  : shape_(std::move(shape)), text_(shape_->groups.size()) {
  // nop
}

// -- calls --------------------------------------------------------------------

add_request engine_book::add(request_id id, token_count prompt_tokens,
                             const add_with& how) {
  tokens_.add(id, how.like, how.shared);
  auto& row = rows_[id] = {};
  row.known = prompt_tokens;
  row.parent = how.parent;
  auto call = add_request{};
  call.request = id;
  call.prompt_tokens = prompt_tokens;
  call.known_tokens = prompt_tokens;
  call.no_read = how.no_read;
  call.no_store = how.no_store;
  call.prompt_only = how.prompt_only;
  call.cap = how.cap;
  return call;
}

std::optional<extend_keys> engine_book::new_keys(request_id id) {
  auto& row = rows_.at(id);
  const auto span = shape_->hash_tokens;
  auto call = extend_keys{};
  call.request = id;
  call.first = static_cast<std::uint64_t>(row.hashed / span);
  call.parent = row.parent;
  for (; row.hashed + span <= row.known; row.hashed += span) {
    call.hashes.push_back(tokens_.hash(id, row.hashed + span));
    for (auto at = row.hashed; at < row.hashed + span; ++at)
      call.token_ids.push_back(
        static_cast<std::int32_t>(tokens_.prefix(id, at) & 0xffff));
  }
  if (call.hashes.empty())
    return std::nullopt;
  for (group_id g = 0; g < shape_->groups.size(); ++g) {
    const auto chunks
      = static_cast<std::size_t>(row.known / shape_->groups[g].chunk_tokens);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk)
      text_.remember(key_of(id, g, chunk), id, chunk);
  }
  return call;
}

allocated engine_book::allocate(
  request_id id, const block_lists& blocks, token_count external,
  std::optional<std::vector<std::vector<std::uint8_t>>> hashed) {
  auto& row = rows_.at(id);
  auto call = allocated{id, external, blocks, {}};
  if (hashed) {
    call.hashed = std::move(*hashed);
  } else {
    for (std::size_t g = 0; g < blocks.size(); ++g) {
      auto& marks = call.hashed.emplace_back(blocks[g].size(), 0);
      const auto whole
        = static_cast<std::size_t>(row.local / shape_->groups[g].block_tokens);
      std::fill_n(marks.begin(), std::min(whole, marks.size()), 1);
    }
  }
  row.loading = row.local + external;
  return call;
}

step_call engine_book::step(const turn& what) {
  auto call = step_call{};
  call.step = ++last_step_;
  for (auto id : what.preempt) {
    auto& row = rows_.at(id);
    row.computed = 0;
    row.preempted = true;
    row.table.clear();
    call.preempted.push_back(id);
  }
  for (const auto& x : what.run)
    call.rows.push_back(schedule(x));
  call.finished = std::exchange(ended_, {});
  return call;
}

void engine_book::lose_blocks() {
  for (auto& [id, row] : rows_) {
    row.computed = 0;
    row.preempted = row.scheduled;
    row.table.clear();
  }
}

step_row engine_book::schedule(const turn_row& what) {
  auto& row = rows_.at(what.request);
  auto out = step_row{};
  out.request = what.request;
  out.kind = row.preempted ? row_kind::resumed
           : row.scheduled ? row_kind::running
                           : row_kind::fresh;
  out.new_blocks = what.blocks;
  out.computed = row.computed;
  out.scheduled = what.tokens;
  out.known = row.known;
  if (out.kind != row_kind::running)
    row.table.clear();
  row.table.resize(shape_->groups.size());
  for (std::size_t g = 0; g < what.blocks.size(); ++g)
    row.table[g].insert(row.table[g].end(), what.blocks[g].begin(),
                        what.blocks[g].end());
  row.scheduled = true;
  row.preempted = false;
  writes_[last_step_].push_back(
    {what.request, row.computed, row.computed + what.tokens, row.table});
  row.computed += what.tokens;
  return out;
}

finish_call engine_book::finish(request_id id, finish_reason reason) {
  const auto& row = rows_.at(id);
  ended_.push_back({id, reason, row.known, row.computed});
  return ended_.back();
}

truncate_call engine_book::truncate(request_id id, token_count tokens) {
  auto& row = rows_.at(id);
  row.known = tokens;
  row.computed = std::min(row.computed, tokens);
  row.hashed = tokens / shape_->hash_tokens * shape_->hash_tokens;
  return {id, tokens};
}

// -- notices ------------------------------------------------------------------

void engine_book::note(const load_done& x) {
  auto& row = rows_.at(x.request);
  row.computed = row.loading;
}

void engine_book::note(const load_failed& x) {
  rows_.at(x.request).computed = x.first_bad_token;
}

// -- what is computed ---------------------------------------------------------

void engine_book::compute(step_id step, memory_shadow& memory) {
  for (const auto& x : writes_[step])
    memory.write(*shape_, tokens_, x.request, x.table, x.from, x.to);
}

std::vector<std::size_t> engine_book::copy(const job& work,
                                           memory_shadow& memory) {
  return memory.copy(*shape_, tokens_, work);
}

// -- names --------------------------------------------------------------------

chunk_key engine_book::key_of(request_id id, group_id group,
                              std::size_t chunk) {
  const auto end
    = static_cast<token_count>(chunk + 1) * shape_->groups[group].chunk_tokens;
  return {tokens_.hash(id, end), group, shape_->model};
}

} // namespace kvtide::test
