// SPDX-License-Identifier: Apache-2.0

#include "tests/support/played_engine.hpp"

namespace kvtide::test {

namespace {

std::string text_of(const lookup_answer& x) {
  auto words = std::vector<std::string>{"lookup"};
  for (const auto& hit : x.hits) {
    words.push_back(name_of(hit.request));
    words.push_back(hit.ask_again ? "defer" : std::to_string(hit.tokens));
    words.push_back(std::to_string(hit.promise));
  }
  return joined(words, " ");
}

std::string text_of(const load_failed& x) {
  return "load_failed " + name_of(x.request) + " " + std::to_string(x.job)
       + " from " + std::to_string(x.first_bad_token) + " " + listed(x.blocks)
       + (x.use_new_blocks ? " new" : "");
}

} // namespace

void played_engine::notice(std::string text) {
  log_.push_back(text);
  notices_.push_back(std::move(text));
}

template <class Answer>
void played_engine::answer(const Answer& x, const std::string& text) {
  log_.push_back(std::to_string(x.ticket) + ": " + text);
  answers_.emplace_back(x);
}

engine_actor::behavior_type played_engine::behavior() {
  return {
    [this](const lookup_answer& x) { answer(x, text_of(x)); },
    [this](const step_plan& x) {
      pending_work_ = x.pending_work;
      answer(x, "step " + std::to_string(x.step) + " " + book_.text().of(x));
    },
    [this](const finish_answer& x) {
      answer(x, "finish " + name_of(x.request) + " " + listed(x.held));
    },
    [this](const stats_answer& x) { answer(x, "stats"); },
    [this](const events_answer& x) { answer(x, "events"); },
    [this](const msg::snapshot_answer& x) { snapshot_ = x; },
    [this](const call_done& x) { answer(x, "done " + listed(x.in_flight)); },
    [this](const call_failed& x) {
      notice("failed " + name_of(x.request) + " " + to_string(x.reason.code));
    },
    [this](const load_done& x) {
      notice("load_done " + name_of(x.request) + " " + std::to_string(x.job));
      book_.note(x);
    },
    [this](const load_failed& x) {
      notice(text_of(x));
      book_.note(x);
    },
    [this](const blocks_released& x) {
      notice("released " + name_of(x.request) + " " + listed(x.blocks));
    },
    [this](const rank_lost& x) {
      notice("rank_lost " + std::to_string(x.rank));
    },
    [this](const rank_back& x) {
      notice("rank_back " + std::to_string(x.rank));
    },
    [this](const overload& x) {
      notice("overload " + std::to_string(x.jobs_in_flight));
    },
    [this](const cache_lost&) { notice("cache_lost"); },
    [this](const explain_answer& x) {
      answer(x, "explain " + name_of(x.request) + " "
                  + (x.ask_again ? "again" : std::to_string(x.tokens)) + " "
                  + to_string(x.reason));
    },
  };
}

} // namespace kvtide::test
