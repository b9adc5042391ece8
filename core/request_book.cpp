// SPDX-License-Identifier: Apache-2.0

#include "core/request_book.hpp"

#include "core/store_capability.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::core {

namespace {

std::size_t divide_up(token_count x, token_count y) noexcept {
  return static_cast<std::size_t>((x + y - 1) / y);
}

} // namespace

request_book::request_book(std::shared_ptr<const layout> shape,
                           const rules& rule, token_count prompt_tokens)
  : shape_(std::move(shape)), rule_(&rule), prompt_(prompt_tokens) {
  groups_.reserve(shape_->groups.size());
  for (group_id g = 0; g < shape_->groups.size(); ++g)
    groups_.push_back({key_list{g, shape_->model}, {}});
}

void request_book::append_hash(const prefix_hash& hash) {
  ++hashes_;
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (hashes_ % shape_->groups[g].hashes_per_chunk == 0)
      groups_[g].keys.append(hash); // The last hash of a chunk is its key.
}

void request_book::apply(const request_update& update) {
  const auto complete = static_cast<token_count>(token_ids_.size())
                     == static_cast<token_count>(hashes_) * shape_->hash_tokens;
  for (const auto& hash : update.hashes)
    append_hash(hash);
  if (update.parent.size() > 0)
    parent_ = update.parent;
  if (complete)
    token_ids_.insert(token_ids_.end(), update.token_ids.begin(),
                      update.token_ids.end());
  if (update.empty_tables)
    for (auto& group : groups_)
      group.table.clear();
  for (std::size_t g = 0; g < update.appended.size(); ++g)
    groups_[g].table.insert(groups_[g].table.end(), update.appended[g].begin(),
                            update.appended[g].end());
  for (const auto& place : update.cleared)
    groups_[place.group].table[place.position] = no_block;
}

void request_book::truncate(token_count tokens) {
  const auto left = static_cast<std::uint64_t>(tokens / shape_->hash_tokens);
  if (left >= hashes_)
    return;
  hashes_ = left;
  for (std::size_t g = 0; g < groups_.size(); ++g)
    groups_[g].keys.truncate(left / shape_->groups[g].hashes_per_chunk);
  const auto ids = static_cast<std::size_t>(left)
                 * static_cast<std::size_t>(shape_->hash_tokens);
  if (token_ids_.size() > ids)
    token_ids_.resize(ids);
}

std::vector<key_view> request_book::views() const {
  auto out = std::vector<key_view>{};
  out.reserve(groups_.size());
  for (const auto& group : groups_)
    out.push_back(group.keys.view());
  return out;
}

bool request_book::reachable(const group_layout& group, std::size_t chunk,
                             std::size_t storable) const noexcept {
  if (group.segment == 0)
    return true;
  // Hits end only where a chunk of the full attention groups does; of the
  // chunks before that only the window is ever read.
  const auto place = chunk % group.segment;
  const auto length = std::min(group.segment, storable - (chunk - place));
  const auto tail = group.window_chunks + (group.draft ? 1 : 0);
  return place + tail >= length;
}

std::vector<block_id>
request_book::stored_blocks(const group_layout& group, const group_book& book,
                            std::size_t chunk, token_count& first_token) const {
  const auto per_chunk = shape_->blocks_per_chunk;
  const auto first = chunk * per_chunk;
  auto out = std::vector<block_id>(
    book.table.begin() + static_cast<std::ptrdiff_t>(first),
    book.table.begin() + static_cast<std::ptrdiff_t>(first + per_chunk));
  first_token = static_cast<token_count>(first) * group.block_tokens;
  if (!rule_->window_holes_hide_chunk)
    return out;
  // What lies before a hole is never read: a window that ends behind the hole
  // would need the hole too.
  const auto hole = std::find(out.rbegin(), out.rend(), no_block);
  const auto holes = static_cast<std::size_t>(out.rend() - hole);
  std::fill_n(out.begin(), holes, no_block);
  first_token += static_cast<token_count>(holes) * group.block_tokens;
  return out;
}

std::vector<std::int32_t> request_book::tokens_of(const group_layout& group,
                                                  std::size_t chunk) const {
  const auto length = static_cast<std::size_t>(group.chunk_tokens);
  const auto first = chunk * length;
  if (first + length > token_ids_.size())
    return {};
  const auto begin = token_ids_.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

store_plan
request_book::plan_store(token_count wanted,
                         const std::vector<std::size_t>& next) const {
  auto out = store_plan{};
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto& group = shape_->groups[g];
    const auto& book = groups_[g];
    const auto per_chunk = shape_->blocks_per_chunk;
    const auto storable = storable_chunks(
      group, per_chunk, wanted, prompt_, {book.keys.size(), book.table.size()});
    out.storable.push_back(storable);
    for (auto chunk = next[g]; chunk < storable; ++chunk) {
      if (book.table[(chunk + 1) * per_chunk - 1] == no_block
          || !reachable(group, chunk, storable))
        continue;
      const auto end = static_cast<token_count>(chunk + 1) * group.chunk_tokens;
      auto first_token = token_count{0};
      auto blocks = stored_blocks(group, book, chunk, first_token);
      // R4: the window that ends with the chunk must be whole.
      if (rule_->window_holes_hide_chunk) {
        const auto start = end - group.chunk_tokens;
        const auto needed = group.sliding()
                            ? std::max(start, end - group.window_tokens + 1)
                            : start;
        if (first_token > needed)
          continue;
      }
      auto candidate = store_candidate{};
      candidate.key = book.keys[chunk];
      candidate.chunk = static_cast<std::uint32_t>(chunk);
      candidate.end_tokens = end;
      candidate.first_token = first_token;
      candidate.token_ids = tokens_of(group, chunk);
      if (chunk == 0 && parent_.size() > 0)
        candidate.parent
          = chunk_key{parent_, candidate.key.group, candidate.key.model};
      out.candidates.push_back(std::move(candidate));
      out.blocks.push_back(std::move(blocks));
    }
  }
  return out;
}

load_plan request_book::plan_load(
  token_count total, const std::vector<std::vector<block_id>>& blocks,
  const std::vector<std::vector<std::uint8_t>>& hashed) const {
  auto out = load_plan{};
  const auto per_chunk = shape_->blocks_per_chunk;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto& group = shape_->groups[g];
    const auto count
      = std::min(divide_up(total, group.block_tokens), blocks[g].size());
    auto first = std::size_t{0};
    while (first < count && (blocks[g][first] == no_block || hashed[g][first]))
      ++first;
    out.first_block.push_back(static_cast<std::uint32_t>(first));
    for (auto begin = first; begin < count;) {
      const auto chunk = begin / per_chunk;
      const auto end = std::min(count, (chunk + 1) * per_chunk);
      auto row = job_row{};
      if (chunk < groups_[g].keys.size())
        row.key = groups_[g].keys[chunk];
      else // Never found in the pool: the load fails as a whole (R13).
        row.key = {prefix_hash{}, static_cast<group_id>(g), shape_->model};
      row.chunk = static_cast<std::uint32_t>(chunk);
      row.blocks.assign(per_chunk, no_block);
      std::copy(blocks[g].begin() + static_cast<std::ptrdiff_t>(begin),
                blocks[g].begin() + static_cast<std::ptrdiff_t>(end),
                row.blocks.begin()
                  + static_cast<std::ptrdiff_t>(begin % per_chunk));
      out.rows.push_back(std::move(row));
      begin = end;
    }
  }
  return out;
}

} // namespace kvtide::core
