// SPDX-License-Identifier: Apache-2.0

#include "gpu/named_pool_engine.hpp"

#include "gpu/digest_threads.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kvtide::gpu {

namespace {

class named_pool_engine : public copy_engine {
public:
  named_pool_engine(std::unique_ptr<copy_engine> inner,
                    named_engine_config config)
    : inner_(std::move(inner)), pool_(config.pool) {
    if (config.threads > 0)
      threads_ = std::make_unique<digest_threads>(
        *pool_, std::move(config.wake), config.threads);
  }

  [[nodiscard]] ec submit(copy_job job) override {
    auto contents = std::exchange(job.contents, {});
    if (contents.empty() || stores_.count(job.id) > 0)
      return inner_->submit(std::move(job));
    // Before any thread or device can touch the slots.
    for (const auto& x : contents) {
      pool_->table().start_writing(x.slot);
      writers_[x.slot] = job.id;
    }
    const auto id = job.id;
    const auto refused = inner_->submit(std::move(job));
    if (refused == ec::none)
      stores_.emplace(id, store{std::move(contents), {}, {}, 0});
    return refused;
  }

  [[nodiscard]] std::optional<fence>
  make_fence(step_id step, const std::vector<job_id>& jobs) override {
    auto made = inner_->make_fence(step, jobs);
    // What is over for the fence must be over for whoever hears of it (S5);
    // without threads the next `poll` sees to that.
    if (made && (made->kind != fence::kind_t::none || !threads_))
      return made;
    auto awaited = jobs;
    std::erase_if(awaited,
                  [this](job_id id) { return stores_.count(id) == 0; });
    if (made && awaited.empty())
      return made;
    fences_.push_back({step, std::move(awaited), made.has_value()});
    return std::nullopt;
  }

  void poll(std::vector<completion>& done,
            std::vector<step_id>& steps) override {
    inner_->poll(ended_, passed_);
    for (auto& x : ended_)
      copied(std::move(x), done);
    ended_.clear();
    if (threads_) {
      if (inner_->lost().code != ec::none)
        threads_->finish(); // Nobody polls after this.
      for (const auto& x : threads_->take())
        digested(x, done);
    }
    for (const auto step : passed_)
      if (const auto at = std::find_if(
            fences_.begin(), fences_.end(),
            [step](const auto& x) { return x.step == step && !x.passed; });
          at != fences_.end())
        at->passed = true;
      else
        steps.push_back(step);
    passed_.clear();
    std::erase_if(fences_, [&](const waiting_fence& x) {
      const auto is_over
        = x.passed
       && std::all_of(x.jobs.begin(), x.jobs.end(),
                      [this](job_id id) { return stores_.count(id) == 0; });
      if (is_over)
        steps.push_back(x.step);
      return is_over;
    });
  }

  void advance(nanoseconds_t now) override {
    inner_->advance(now);
  }

  [[nodiscard]] bool advanced() const override {
    return inner_->advanced();
  }

  [[nodiscard]] nanoseconds_t next_due() const override {
    return inner_->next_due();
  }

  [[nodiscard]] std::size_t in_flight() const override {
    return inner_->in_flight() + copied_;
  }

  [[nodiscard]] error lost() const override {
    return inner_->lost();
  }

  [[nodiscard]] std::vector<std::string> notes() const override {
    return inner_->notes();
  }

private:
  struct store {
    std::vector<slot_content> contents;
    /// By index in `contents`.
    std::vector<content_digest> digests;
    /// Of the copy.
    completion ended;
    /// Digests that are not there yet.
    std::size_t missing = 0;
  };

  struct waiting_fence {
    step_id step = 0;
    std::vector<job_id> jobs;
    /// For the copies it is over.
    bool passed = false;
  };

  void copied(completion x, std::vector<completion>& done) {
    const auto at = stores_.find(x.job);
    if (at == stores_.end())
      return done.push_back(std::move(x));
    auto& what = at->second;
    what.ended = std::move(x);
    const auto ok = what.ended.result == copy_result::done;
    if (!threads_ || !ok)
      return report(at, ok, done);
    ++copied_;
    what.missing = what.contents.size();
    what.digests.resize(what.contents.size());
    for (std::size_t i = 0; i < what.contents.size(); ++i)
      threads_->put({at->first, i, what.contents[i], {}});
  }

  void digested(const digest_task& x, std::vector<completion>& done) {
    const auto at = stores_.find(x.job);
    at->second.digests[x.index] = x.digest;
    if (--at->second.missing > 0)
      return;
    --copied_;
    report(at, true, done);
  }

  void report(std::unordered_map<job_id, store>::iterator at, bool ok,
              std::vector<completion>& done) {
    auto& what = at->second;
    for (std::size_t i = 0; i < what.contents.size(); ++i) {
      const auto& content = what.contents[i];
      const auto writer = writers_.find(content.slot);
      // Since then a later store may have got the slot, after a reset.
      if (writer == writers_.end() || writer->second != at->first)
        continue;
      writers_.erase(writer);
      if (ok)
        pool_->table().finish_writing(
          content, threads_ ? what.digests[i] : pool_->digest_of(content));
      else
        pool_->table().forget(content.slot);
    }
    done.push_back(std::move(what.ended));
    stores_.erase(at);
  }

  std::unique_ptr<copy_engine> inner_;
  std::shared_ptr<named_pool> pool_;
  /// That were submitted and not reported.
  std::unordered_map<job_id, store> stores_;
  /// Of each slot that is being written, the last store.
  std::unordered_map<slot_id, job_id> writers_;
  /// Stores whose copies have ended and whose digests are being made.
  std::size_t copied_ = 0;
  std::vector<waiting_fence> fences_;
  std::vector<completion> ended_;
  std::vector<step_id> passed_;
  /// Null if digests are made in `poll`. Ends before what it reads.
  std::unique_ptr<digest_threads> threads_;
};

} // namespace

result<std::unique_ptr<copy_engine>>
make_named_pool_engine(std::unique_ptr<copy_engine> inner,
                       named_engine_config config) {
  try {
    return std::unique_ptr<copy_engine>{
      std::make_unique<named_pool_engine>(std::move(inner), std::move(config))};
  } catch (const std::system_error&) {
    return error{ec::out_of_memory,
                 "the system refuses a thread for the named host pool: allow "
                 "more threads for this process"};
  }
}

} // namespace kvtide::gpu
