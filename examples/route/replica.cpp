// SPDX-License-Identifier: Apache-2.0

#include "examples/route/replica.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

namespace kvtide::route {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;
/// Of one block in memory: what the bytes are does not matter here.
constexpr std::uint64_t block_bytes = 16;

template <class T>
T get(result<T> answer) {
  if (!answer) {
    std::fprintf(stderr, "kvtide-route: %s\n", answer.failure().text.c_str());
    std::exit(1);
  }
  return std::move(answer).value();
}

std::size_t blocks_of(token_count tokens, std::int32_t per_block) {
  return static_cast<std::size_t>((tokens + per_block - 1) / per_block);
}

runtime start(const replica_shape& shape, std::shared_ptr<publisher> teller) {
  auto opts = shape.runtime_options();
  opts.publisher = std::move(teller);
  return get(runtime::start(opts));
}

} // namespace

options replica_shape::runtime_options() const {
  auto out = options{};
  out.groups.front().tokens_per_block = chunk_tokens;
  out.blocks_per_chunk = 1;
  out.tokens_per_hash = chunk_tokens;
  out.model_fingerprint = "kvtide-route";
  out.host_bytes = blocks_of(pool_tokens, chunk_tokens) * block_bytes;
  out.offload_prompt_only = true;
  out.device = device_kind::host_virtual;
  // Nobody is idle before the next step is due.
  out.idle_delay = std::chrono::milliseconds{2 * step / 1'000'000};
  return out;
}

replica::replica(const replica_shape& shape, std::shared_ptr<publisher> teller)
  : shape_(shape),
    memory_((blocks_of(shape.device_tokens, shape.chunk_tokens) + 1)
            * block_bytes),
    runtime_(start(shape, std::move(teller))), engine_(runtime_),
    rank_(runtime_.local_rank(0)) {
  const auto blocks = memory_.size() / block_bytes;
  auto kv = kv_memory{};
  kv.tensors = {{memory_.data(), memory_.size(), memory_kind::host,
                 static_cast<std::uint32_t>(blocks), block_bytes, block_bytes}};
  kv.references = {{0, 0, 0, 0, block_bytes}};
  kv.model_fingerprint = "kvtide-route";
  (void)get(rank_.register_kv(std::move(kv), patience));
  for (auto block = static_cast<block_id>(blocks - 1); block > 0; --block)
    free_.push_back(block);
}

void replica::take(prompt what) {
  load_ += what.tokens;
  waiting_.push_back(std::move(what));
}

void replica::step(nanoseconds_t now) {
  end_requests(now);
  admit();
  auto call = step_call{};
  call.step = ++steps_;
  call.rows = plan();
  call.finished = std::exchange(finished_, {});
  auto rows = call.rows;
  const auto plan = get(engine_.step(std::move(call), patience));
  const auto ready = get(rank_.begin_step(steps_, {}, patience));
  auto end = now + shape_.step;
  if (ready.wait_for.kind == fence::kind_t::event)
    end = std::max(end, static_cast<nanoseconds_t>(ready.wait_for.handle));
  runtime_.local_rank(0).end_step(
    steps_, {static_cast<std::uint64_t>(now + shape_.step)});
  (void)get(engine_.advance(now + shape_.step, patience));
  for (const auto& row : rows) {
    auto& who = running_.at(row.request);
    who.computed += row.scheduled;
    load_ -= row.scheduled;
    if (who.computed == who.what.tokens) {
      who.end = end + who.what.output * shape_.output_token;
      tally_.first_token.push_back(end - who.what.arrival);
    }
  }
  drains_ = plan.pending_work;
  hear();
}

void replica::settle() {
  // The pool's report comes behind whatever it told its publisher.
  (void)get(engine_.get_stats(patience));
}

void replica::end_requests(nanoseconds_t now) {
  for (auto at = running_.begin(); at != running_.end();) {
    auto& who = at->second;
    if (who.end == 0 || who.end > now) {
      ++at;
      continue;
    }
    const auto call = finish_call{who.what.id, finish_reason::length,
                                  who.what.tokens, who.what.tokens};
    const auto answer = get(engine_.finish(call, patience));
    finished_.push_back(call);
    // With all loads over, nothing is held.
    for (const auto block : who.blocks)
      if (std::find(answer.held.begin(), answer.held.end(), block)
          == answer.held.end())
        free_.push_back(block);
    at = running_.erase(at);
  }
}

void replica::admit() {
  while (!waiting_.empty() && running_.size() < shape_.max_running
         && admit_first())
    ; // nop
}

bool replica::admit_first() {
  auto& what = waiting_.front();
  const auto need = blocks_of(what.tokens, shape_.chunk_tokens);
  if (need > free_.size())
    return false;
  if (!what.added) {
    runtime_.add({what.id, what.tokens, what.tokens});
    runtime_.extend({what.id, 0, what.hashes, {}, {}});
    what.added = true;
  }
  const auto hit
    = get(engine_.lookup({{what.id, 0, what.tokens}}, patience)).hits.front();
  if (hit.ask_again) // Somebody stores or loads the same.
    return false;
  const auto found = hit.tokens;
  auto who = request{};
  who.blocks.assign(free_.end() - static_cast<std::ptrdiff_t>(need),
                    free_.end());
  free_.resize(free_.size() - need);
  runtime_.allocate(
    {what.id, found, {who.blocks}, {std::vector<std::uint8_t>(need, 0)}});
  who.computed = found;
  who.loading = found > 0;
  load_ -= found;
  ++tally_.prompts;
  tally_.prompt_tokens += what.tokens;
  tally_.hit_tokens += found;
  tally_.computed_tokens += what.tokens - found;
  if (what.promised >= 0) {
    // A lookup leaves at least one token to compute.
    const auto promised = std::min(what.promised, what.tokens - 1);
    ++tally_.promised_prompts;
    tally_.short_prompts += found < promised;
    tally_.short_tokens += std::max<token_count>(promised - found, 0);
    tally_.longer_prompts += found > promised;
    tally_.longer_tokens += std::max<token_count>(found - promised, 0);
  }
  who.what = std::move(what);
  who.what.hashes.clear();
  waiting_.pop_front();
  const auto id = who.what.id;
  running_.emplace(id, std::move(who));
  return true;
}

std::vector<step_row> replica::plan() {
  auto out = std::vector<step_row>{};
  auto budget = shape_.step_tokens;
  for (auto& [id, who] : running_) {
    const auto due = std::min(budget, who.what.tokens - who.computed);
    if (who.loading || due == 0)
      continue;
    auto row = step_row{};
    row.request = id;
    row.kind = who.fresh ? row_kind::fresh : row_kind::running;
    if (who.fresh)
      row.new_blocks = {who.blocks};
    row.computed = who.computed;
    row.scheduled = due;
    row.known = who.what.tokens;
    who.fresh = false;
    budget -= due;
    out.push_back(std::move(row));
  }
  return out;
}

void replica::hear() {
  for (auto& event : engine_.poll()) {
    if (const auto* done = std::get_if<load_done>(&event)) {
      if (const auto at = running_.find(done->request); at != running_.end())
        at->second.loading = false;
    } else if (const auto* failed = std::get_if<load_failed>(&event)) {
      ++tally_.load_failures;
      if (const auto at = running_.find(failed->request);
          at != running_.end()) {
        auto& who = at->second;
        who.loading = false;
        load_ += who.computed - failed->first_bad_token;
        who.computed = failed->first_bad_token;
      }
    } else if (const auto* refused = std::get_if<call_failed>(&event)) {
      (void)get(result<int>{refused->reason});
    }
  }
}

} // namespace kvtide::route
