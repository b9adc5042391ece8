// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/engine_model.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kvtide::explore {

using namespace std::chrono_literals;

namespace {

// Above all others.
constexpr request_id last_writer = 2'000;
constexpr request_id last_reader = 2'001;

} // namespace

engine_model::engine_model(const scenario& what,
                           std::shared_ptr<const core::layout> shape,
                           text_book& texts, shadow& memory, findings& found,
                           outlet out)
  : what_(what), shape_(std::move(shape)), texts_(texts), memory_(memory),
    found_(found), out_(std::move(out)), blocks_(shape_, what_.blocks, found_) {
  // nop
}

// -- what happens to it -------------------------------------------------------

void engine_model::computed(step_id step) {
  flights_.at(step).computed = true;
}

void engine_model::on(const lookup_answer& x) {
  check_explained(x);
  if (nap_ != nap::awake) {
    lookup_ = lookup_state::none;
    for (const auto& hit : x.hits) {
      if (hit.ask_again || hit.tokens != 0 || hit.promise != 0)
        found_.report("life", "request " + std::to_string(hit.request)
                                + " is found while the engine sleeps");
      if (auto& asked = lives_.at(hit.request); asked.state == phase::asked)
        asked.state = phase::waiting;
    }
    return;
  }
  hits_ = x.hits;
  lookup_ = lookup_state::answered;
}

void engine_model::on(const step_plan& x) {
  const auto known = flights_.find(x.step);
  if (known == flights_.end() || known->second.planned)
    return found_.report("S1", "step " + std::to_string(x.step)
                                 + " was answered twice, or never called");
  known->second.planned = true;
  forget_if_over(x.step);
  if (what_.opts.delivery == plan_delivery::by_engine)
    out_.deliver(x.step, x.bytes);
}

void engine_model::on(const finish_answer& x) {
  empty_turns_ = 0;
  for (auto block : x.held)
    blocks_.reserve(block);
  memory_.released(blocks_.give_back(leaving_.at(x.request)));
  leaving_.erase(x.request);
}

void engine_model::on(const call_failed& x) {
  found_.report("S1", "call " + std::to_string(x.ticket)
                        + " failed: " + x.reason.text);
}

void engine_model::on(const load_done& x) {
  empty_turns_ = 0;
  take_outcome(x.job);
  memory_.load_announced(x.job);
  const auto found = lives_.find(x.request);
  if (found == lives_.end() || found->second.state != phase::loading)
    return;
  found->second.state = phase::ready;
  found->second.planned = found->second.loading;
}

void engine_model::on(const load_failed& x) {
  empty_turns_ = 0;
  take_outcome(x.job);
  const auto found = lives_.find(x.request);
  if (found == lives_.end())
    return;
  auto& loser = found->second;
  const auto over = leaving_.find(x.request);
  auto& table = over != leaving_.end() ? over->second : loser.table;
  // These blocks are not the request's any more, whether it lives or not.
  if (x.use_new_blocks)
    for (auto block : x.blocks) {
      blocks_.reserve(block);
      for (auto& list : table)
        std::replace(list.begin(), list.end(), block, no_block);
    }
  if (loser.state != phase::loading)
    return;
  if (!x.use_new_blocks && out_.decide(2) == 0) {
    // What lies before the first bad token is good.
    loser.state = phase::ready;
    loser.planned = x.first_bad_token;
    return;
  }
  blocks_.give_back(loser.table);
  loser.state = phase::waiting;
  loser.planned = 0;
}

void engine_model::take_outcome(job_id id) {
  if (!outcomes_.insert(id).second)
    found_.report("S9", "the engine hears of the end of job "
                          + std::to_string(id) + " twice");
}

void engine_model::on(const blocks_released& x) {
  empty_turns_ = 0;
  memory_.released(x.blocks);
  for (auto block : x.blocks)
    blocks_.release(block);
}

/// Nothing came between a question and the lookup that it was about.
void engine_model::check_explained(const lookup_answer& x) {
  for (const auto ticket : out_.explained(x.ticket)) {
    const auto known = explained_.find(ticket);
    if (known == explained_.end())
      continue;
    const auto& told = known->second;
    for (const auto& hit : x.hits)
      if (hit.request == told.request && told.local == 0
          && (hit.ask_again != told.ask_again
              || (!hit.ask_again && hit.tokens != told.tokens)))
        found_.report("life", "explain says of request "
                                + std::to_string(hit.request) + " that "
                                + told.text + ", " + std::to_string(told.tokens)
                                + " tokens, but a lookup finds "
                                + std::to_string(hit.tokens));
  }
}

void engine_model::on(const explain_answer& x) {
  explained_[x.ticket] = x;
}

// -- a nap --------------------------------------------------------------------

void engine_model::call_sleep() {
  nap_ = nap::falling_asleep;
  nap_turns_ = 0;
  const auto deadline = out_.decide(2) == 0 ? std::chrono::nanoseconds{1h}
                                            : what_.opts.idle_delay;
  call(msg::sleep{0, std::chrono::nanoseconds{deadline}.count()});
  nap_ticket_ = ticket_;
}

void engine_model::on(const call_done& x) {
  if (x.ticket != nap_ticket_)
    return;
  if (nap_ == nap::falling_asleep) {
    nap_ = nap::asleep;
    if (x.in_flight.empty())
      memory_.slept();
  } else if (nap_ == nap::waking) {
    nap_ = nap::awake;
    empty_turns_ = 0;
  }
}

/// Compute has ended, and every load has its outcome.
bool engine_model::can_leave() const {
  return nap_ == nap::asleep && flights_.empty() && leaving_.empty()
      && with(phase::loading).empty() && lookup_ != lookup_state::asked;
}

void engine_model::leave() {
  nap_ = nap::leaving;
  for (rank_id r = 0; r < what_.opts.ranks; ++r)
    awaited_.insert(r);
  if (out_.leave())
    return;
  awaited_.clear();
  lose_blocks();
  call_wake();
}

void engine_model::left(rank_id rank) {
  if (nap_ != nap::leaving || awaited_.erase(rank) == 0 || !awaited_.empty())
    return;
  lose_blocks();
  nap_ = nap::returning;
  for (rank_id r = 0; r < what_.opts.ranks; ++r)
    awaited_.insert(r);
  out_.come_back();
}

void engine_model::came_back(rank_id rank) {
  if (nap_ == nap::returning && awaited_.erase(rank) > 0 && awaited_.empty())
    call_wake();
}

void engine_model::lose_blocks() {
  for (auto id : alive()) {
    auto& x = lives_.at(id);
    memory_.released(blocks_.give_back(x.table));
    x.state = phase::waiting;
    x.planned = 0;
    x.needs_table = true;
  }
}

void engine_model::call_wake() {
  nap_ = nap::waking;
  call(msg::wake{});
  nap_ticket_ = ticket_;
}

// -- its state ----------------------------------------------------------------

bool engine_model::over() const {
  return nap_ == nap::awake && arrived_ >= what_.requests && alive().empty()
      && leaving_.empty() && flights_.empty() && lookup_ == lookup_state::none
      && ((what_.stops_at_once && !probed_) || finished_.empty());
}

std::vector<request_id> engine_model::with(phase state) const {
  auto out = std::vector<request_id>{};
  for (const auto& [id, x] : lives_)
    if (x.state == state)
      out.push_back(id);
  return out;
}

std::vector<request_id> engine_model::alive() const {
  auto out = std::vector<request_id>{};
  for (const auto& [id, x] : lives_)
    if (x.state != phase::ended)
      out.push_back(id);
  return out;
}

std::string engine_model::state_of(request_id id) const {
  switch (lives_.at(id).state) {
    case phase::waiting:
      return "waiting";
    case phase::asked:
      return "asked";
    case phase::loading:
      return "loading";
    case phase::ready:
      return "ready";
    case phase::running:
      return "running";
    case phase::ended:
      break;
  }
  return "ended";
}

bool engine_model::in_flight(request_id id) const {
  return std::any_of(flights_.begin(), flights_.end(), [id](const auto& step) {
    const auto& rows = step.second.rows;
    return std::any_of(rows.begin(), rows.end(), [id](const compute_row& row) {
      return row.request == id;
    });
  });
}

void engine_model::forget_if_over(step_id step) {
  if (const auto& x = flights_.at(step); x.planned && x.taken)
    flights_.erase(step);
}

// -- calls --------------------------------------------------------------------

void engine_model::add(request_id id, request_id like, token_count shared,
                       token_count prompt, token_count end) {
  texts_.add(id, like, shared);
  auto& x = lives_[id];
  x = {};
  x.prompt = x.known = prompt;
  x.end = end;
  x.table.resize(shape_->groups.size());
  auto made = add_request{};
  made.request = id;
  made.prompt_tokens = made.known_tokens = prompt;
  call(msg::add{0, made});
  send_keys(id);
}

void engine_model::send_keys(request_id id) {
  auto& x = lives_.at(id);
  auto more = extend_keys{};
  more.request = id;
  more.first = static_cast<std::uint64_t>(x.hashed / shape_->hash_tokens);
  for (; x.hashed + shape_->hash_tokens <= x.known;
       x.hashed += shape_->hash_tokens)
    more.hashes.push_back(texts_.hash(id, x.hashed + shape_->hash_tokens));
  if (more.hashes.empty())
    return;
  for (group_id g = 0; g < shape_->groups.size(); ++g) {
    const auto tokens = shape_->groups[g].chunk_tokens;
    for (std::size_t c = 0; static_cast<token_count>(c + 1) * tokens <= x.known;
         ++c) {
      const auto end = static_cast<token_count>(c + 1) * tokens;
      texts_.publish({texts_.hash(id, end), g, shape_->model}, id, c, tokens);
    }
  }
  call(msg::extend{0, std::move(more)});
}

bool engine_model::abort(request_id id, finish_reason reason) {
  const auto found = lives_.find(id);
  if (found == lives_.end() || found->second.state == phase::ended)
    return false;
  end(id, reason);
  return true;
}

void engine_model::end(request_id id, finish_reason reason) {
  auto& x = lives_.at(id);
  // While a load is in flight nothing is computed.
  const auto computed = x.state == phase::loading ? 0 : x.planned;
  const auto last = finish_call{id, reason, x.known, computed};
  // Without a block table nothing more can be stored.
  x.whole = x.state == phase::running;
  x.state = phase::ended;
  if (!x.probe)
    endings_[id] = x.known;
  leaving_[id] = std::exchange(x.table, {});
  finished_.push_back(last);
  call(msg::finish{0, last});
}

void engine_model::call_reset() {
  out_.reset();
  call(msg::reset{});
}

void engine_model::call_stats() {
  call(msg::get_stats{});
}

/// The user changes the last tokens.
void engine_model::edit(request_id id) {
  auto& x = lives_.at(id);
  const auto keep = x.prompt;
  texts_.edit(id, keep);
  call(msg::truncate{0, {id, keep}});
  x.known = keep + 1;
  x.planned = std::min(x.planned, keep);
  x.hashed = keep / shape_->hash_tokens * shape_->hash_tokens;
  blocks_.shrink(x.table, keep);
  // The whole table is told again, as the runtime appends only.
  x.needs_table = true;
  send_keys(id);
  call(msg::outputs{0, {last_step_, {{id, x.known, x.planned}}}});
}

void engine_model::add_probes() {
  const auto texts = endings_;
  auto left = 2;
  for (const auto& [id, known] : texts) {
    if (left-- == 0)
      return;
    const auto twin = id + 1'000;
    probe(twin, id, known, known + 1);
    if (what_.keeps_all() && lives_.at(id).whole) {
      // All that is whole below the last sampled token (R1).
      const auto chunk = shape_->groups.front().chunk_tokens;
      const auto frontier = std::max(lives_.at(id).prompt, known - 1);
      lives_.at(twin).must_hit = frontier / chunk * chunk;
    }
  }
}

void engine_model::add_last_writer() {
  auto longest = token_count{0};
  for (const auto& group : shape_->groups)
    longest = std::max(longest, token_count{group.chunk_tokens});
  probe(last_writer, 0, 0, 2 * longest + 1);
}

void engine_model::add_last_reader() {
  const auto known = lives_.at(last_writer).prompt;
  probe(last_reader, last_writer, known, known);
  lives_.at(last_reader).must_find = what_.slots >= shape_->groups.size();
}

void engine_model::probe(request_id id, request_id like, token_count shared,
                         token_count prompt) {
  probed_ = true;
  empty_turns_ = 0;
  add(id, like, shared, prompt, prompt + 1);
  lives_.at(id).probe = true;
}

} // namespace kvtide::explore
