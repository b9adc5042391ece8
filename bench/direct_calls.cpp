// SPDX-License-Identifier: Apache-2.0

#include "bench/direct_calls.hpp"

#include "core/store_capability.hpp"
#include "core/store_plan.hpp"

#include <span>
#include <utility>

namespace kvtide::bench {

direct_calls::direct_calls(const load_config& config)
  : shape_(std::make_shared<const core::layout>(
    core::make_layout(options_of(config)).value())),
    rule_(&core::rules_of(config.rules)), ranks_(config.ranks),
    cache_({pool_slots, eviction_policy::lru, 1, true}, *shape_, *rule_),
    jobs_(config.ranks) {
  // nop
}

void direct_calls::add(const add_request& call) {
  auto row = std::make_unique<request>(
    request{core::request_keys{shape_},
            core::block_tables{shape_->groups.size()},
            {},
            {},
            0});
  row->wish.prompt = call.prompt_tokens;
  row->wish.known = call.known_tokens;
  row->wish.cap = call.cap;
  row->next.assign(shape_->groups.size(), 0);
  row->boundary = core::next_boundary(*shape_, row->next, call.prompt_tokens);
  requests_.emplace(call.request, std::move(row));
}

void direct_calls::extend(const extend_keys& call) {
  requests_.at(call.request)->keys.append(call.hashes, {}, {});
}

void direct_calls::step(const step_call& call) {
  auto crossing = std::vector<request_id>{};
  fresh_.clear();
  for (const auto& row : call.rows) {
    take_row(row);
    const auto& known = *requests_.at(row.request);
    if (core::wanted_tokens(known.wish, *rule_) >= known.boundary)
      crossing.push_back(row.request);
  }
  for (const auto& tail : call.finished)
    crossing.push_back(tail.request);
  for (auto block : fresh_.all())
    (void)watch_.jobs(block);
  end_jobs();
  store(crossing);
  for (const auto& tail : call.finished) {
    cache_.move_to_newest(requests_.at(tail.request)->keys.views());
    requests_.erase(tail.request);
  }
}

void direct_calls::take_row(const step_row& row) {
  auto& known = *requests_.at(row.request);
  known.wish.computed = row.computed;
  known.wish.scheduled = row.scheduled;
  known.wish.known = row.known;
  if (row.new_blocks.empty())
    return;
  for (group_id g = 0; g < row.new_blocks.size(); ++g) {
    known.open_blocks.append(g, row.new_blocks[g]);
    for (auto block : row.new_blocks[g])
      fresh_.add(block);
  }
}

void direct_calls::store(const std::vector<request_id>& crossing) {
  auto plans = std::vector<core::store_plan>{};
  auto offers = std::vector<core::store_offer>{};
  for (auto id : crossing) {
    auto& row = *requests_.at(id);
    auto& offer = offers.emplace_back();
    offer.request = id;
    offer.keys = row.keys.views();
    auto& plan = plans.emplace_back(core::plan_store(
      *shape_, *rule_, {row.wish.prompt, offer.keys, row.open_blocks},
      core::wanted_tokens(row.wish, *rule_), row.next));
    offer.candidates = std::move(plan.candidates);
  }
  const auto grants = cache_.prepare_stores(offers);
  for (std::size_t i = 0; i < crossing.size(); ++i) {
    auto& row = *requests_.at(crossing[i]);
    auto rows = core::rows_of(grants[i], offers[i].candidates);
    core::advance(*shape_, plans[i].storable, grants[i].settled_tokens,
                  row.next);
    for (group_id g = 0; g < row.next.size(); ++g)
      row.open_blocks.forget_before(g, row.next[g] * shape_->blocks_per_chunk);
    row.boundary = core::next_boundary(*shape_, row.next, row.wish.prompt);
    if (!rows.empty())
      running_.push_back(
        jobs_.add({0, job_kind::store, crossing[i], std::move(rows)}).work.id);
  }
}

void direct_calls::end_jobs() {
  keys_.clear();
  for (auto id : running_)
    for (const auto& row : jobs_.find(id)->work.rows)
      keys_.push_back(row.key);
  cache_.expect(keys_);
  auto rest = std::span<const chunk_key>{keys_};
  for (auto id : std::exchange(running_, {})) {
    for (rank_id rank = 0; rank < ranks_; ++rank)
      (void)jobs_.report(id, rank, job_status::done, 0);
    const auto& rows = jobs_.find(id)->work.rows;
    (void)cache_.complete_store(rest.first(rows.size()), true);
    rest = rest.subspan(rows.size());
    jobs_.erase(id);
  }
}

} // namespace kvtide::bench
