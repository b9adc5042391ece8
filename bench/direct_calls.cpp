// SPDX-License-Identifier: Apache-2.0

#include "bench/direct_calls.hpp"

#include "core/store_capability.hpp"

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
    request{{shape_, *rule_, call.prompt_tokens}, {}, {}, {}, 0});
  row->wish.prompt = call.prompt_tokens;
  row->wish.known = call.known_tokens;
  row->wish.cap = call.cap;
  row->next.assign(shape_->groups.size(), 0);
  row->boundary = core::next_boundary(*shape_, row->next, call.prompt_tokens);
  requests_.emplace(call.request, std::move(row));
}

void direct_calls::extend(const extend_keys& call) {
  auto& hashes = requests_.at(call.request)->update.hashes;
  hashes.insert(hashes.end(), call.hashes.begin(), call.hashes.end());
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
  for (auto block : fresh_)
    (void)watch_.jobs(block);
  end_jobs();
  store(crossing);
}

void direct_calls::take_row(const step_row& row) {
  auto& known = *requests_.at(row.request);
  known.wish.computed = row.computed;
  known.wish.scheduled = row.scheduled;
  known.wish.known = row.known;
  if (row.new_blocks.empty())
    return;
  auto& appended = known.update.appended;
  appended.resize(shape_->groups.size());
  for (std::size_t g = 0; g < row.new_blocks.size(); ++g)
    for (auto block : row.new_blocks[g]) {
      appended[g].push_back(block);
      fresh_.insert(block);
    }
}

void direct_calls::store(const std::vector<request_id>& crossing) {
  auto plans = std::vector<core::store_plan>{};
  auto offers = std::vector<core::store_offer>{};
  for (auto id : crossing) {
    auto& row = *requests_.at(id);
    row.book.apply(std::exchange(row.update, {}));
    auto& plan = plans.emplace_back(
      row.book.plan_store(core::wanted_tokens(row.wish, *rule_), row.next));
    auto& offer = offers.emplace_back();
    offer.request = id;
    offer.candidates = std::move(plan.candidates);
    offer.keys = row.book.views();
  }
  const auto grants = cache_.prepare_stores(offers);
  for (std::size_t i = 0; i < crossing.size(); ++i) {
    auto& row = *requests_.at(crossing[i]);
    auto work = job{};
    work.request = crossing[i];
    for (const auto& accepted : grants[i].accepted) {
      const auto& candidate = offers[i].candidates[accepted.candidate];
      work.rows.push_back({candidate.key, accepted.slot, candidate.chunk,
                           std::move(plans[i].blocks[accepted.candidate])});
    }
    core::advance(*shape_, plans[i].storable, grants[i].settled_tokens,
                  row.next);
    row.boundary = core::next_boundary(*shape_, row.next, row.wish.prompt);
    if (!work.rows.empty())
      running_.push_back(jobs_.add(std::move(work)).work.id);
  }
}

void direct_calls::end_jobs() {
  for (auto id : std::exchange(running_, {})) {
    for (rank_id rank = 0; rank < ranks_; ++rank)
      (void)jobs_.report(id, rank, job_status::done, 0);
    (void)cache_.complete_store(jobs_.find(id)->keys(), true);
    jobs_.erase(id);
  }
}

} // namespace kvtide::bench
