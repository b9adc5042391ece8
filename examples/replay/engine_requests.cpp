// SPDX-License-Identifier: Apache-2.0

/// @file
/// The life of a request in the engine model: it arrives, is loaded, ends, is
/// aborted, and is asked for again.

#include "examples/replay/engine.hpp"
#include "examples/replay/mix.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace kvtide::replay {

namespace {

constexpr nanoseconds_t millisecond = 1'000'000;

// Purposes of chance.
enum : std::uint64_t { dice_request = 1, dice_revisit };

} // namespace

// -- requests -----------------------------------------------------------------

void engine::add_row(std::size_t row) {
  const auto& what = rows_[row % rows_.size()];
  const auto id = request_id{row} + 1;
  auto parts = std::vector<token_text::own_part>{};
  // Two parts, so that output has an identity of its own.
  if (what.prefix_ids.empty())
    parts.push_back({0, mix(id, 0)});
  parts.push_back({what.prompt_tokens, mix(id, 1)});
  const auto seq = std::make_shared<sequence>(
    token_text{what.prefix_ids, std::move(parts), opts_.shape.block_tokens()});
  seq->id = id;
  seq->prompt = what.prompt_tokens;
  seq->output = what.output_tokens;
  auto chance = dice{mix(opts_.seed, id), dice_request};
  seq->stops = chance.roll(2) == 0;
  seq->quick_reuse = chance.chance(opts_.quick_reuse);
  add(seq);
}

void engine::add(const sequence_ptr& seq) {
  seq->known = seq->prompt;
  auto call = add_request{};
  call.request = seq->id;
  call.prompt_tokens = seq->prompt;
  call.known_tokens = seq->known;
  link_.add(std::move(call));
  send_hashes(*seq);
  live_.emplace(seq->id, seq);
  batcher_.enqueue(seq);
  ++counts_.added;
  if (!batcher_.fits(seq->prompt + seq->output)) {
    ++counts_.ignored;
    end(seq, finish_reason::ignored);
    return;
  }
  if (!seq->revisit)
    trouble_.consider(*seq);
}

void engine::send_hashes(sequence& seq) {
  const auto full
    = static_cast<std::size_t>(seq.known / opts_.shape.block_tokens());
  if (full == seq.hashes_sent)
    return;
  auto call = extend_keys{};
  call.request = seq.id;
  call.first = seq.hashes_sent;
  call.hashes.reserve(full - seq.hashes_sent);
  for (; seq.hashes_sent < full; ++seq.hashes_sent) {
    const auto hash = seq.text.hash(seq.hashes_sent);
    call.hashes.emplace_back(&hash, sizeof(hash));
  }
  link_.extend(std::move(call));
}

void engine::end(const sequence_ptr& seq, finish_reason reason) {
  // What some rank does not have must not be stored.
  const auto call
    = lanes_->whole()
      ? finish_call{seq->id, reason, seq->known, seq->computed}
      : finish_call{seq->id, finish_reason::abort, seq->known, 0};
  const auto answer = link_.finish(call);
  finished_.push_back(call);
  batcher_.remove(seq, answer.held);
  trouble_.forget(seq->id);
  seq->ended = true;
  rows_ended_ += seq->revisit ? 0 : 1;
  counts_.output_tokens += static_cast<std::uint64_t>(seq->known - seq->prompt);
  live_.erase(seq->id);
}

void engine::strike(moment when) {
  for (const auto id : trouble_.doomed())
    if (const auto seq = live_.at(id); trouble_.strikes(*seq, when))
      abort(seq);
}

void engine::abort(const sequence_ptr& seq) {
  ++counts_.aborted[static_cast<std::size_t>(seq->where())];
  end(seq, finish_reason::abort);
}

void engine::plan_revisit(const sequence& seq) {
  auto chance = dice{mix(opts_.seed, seq.id), dice_revisit};
  if (seq.revisit || !seq.quick_reuse || !chance.chance(opts_.revisit_rate))
    return;
  const auto id = next_revisit_++;
  auto parts = seq.text.parts();
  parts.push_back({seq.known, mix(id, 1)});
  auto again = std::make_shared<sequence>(token_text{
    seq.text.prefix_ids(), std::move(parts), opts_.shape.block_tokens()});
  again->id = id;
  again->prompt = seq.known;
  again->output = static_cast<token_count>(1 + chance.roll(8));
  again->revisit = true;
  const auto delay
    = static_cast<nanoseconds_t>(1'000 + chance.roll(4'000)) * millisecond;
  revisits_.emplace(now_ + delay, std::move(again));
  ++counts_.revisits;
}

// -- loads --------------------------------------------------------------------

void engine::load_ready(const sequence_ptr& seq, token_count tokens) {
  if (seq->wasted)
    return batcher_.load_wasted(seq);
  check(*seq, batcher_.parts_of(*seq, seq->local, tokens),
        check_reason::loaded);
  batcher_.load_ended(seq, tokens);
}

void engine::handle(const load_done& what) {
  jobs_.load_ended(what.request, next_step_);
  outages_.hit();
  const auto found = live_.find(what.request);
  if (found != live_.end() && found->second->loading)
    load_ready(found->second, found->second->ready);
}

void engine::handle(const load_failed& what) {
  jobs_.load_ended(what.request, next_step_);
  ++counts_.load_failures;
  const auto found = live_.find(what.request);
  if (found == live_.end() || !found->second->loading)
    return;
  const auto seq = found->second;
  if (what.use_new_blocks)
    batcher_.load_failed(seq, what.blocks);
  else
    load_ready(seq, std::clamp(what.first_bad_token, seq->local, seq->ready));
}

void engine::handle(const blocks_released& what) {
  // Of a request that ended while it loaded.
  jobs_.load_ended(what.request, next_step_);
  if (!batcher_.released(what.request, what.blocks))
    ++foreign_releases_;
}

} // namespace kvtide::replay
