// SPDX-License-Identifier: Apache-2.0

/// @file
/// The host engines in tests.

#pragma once

#include "tests/gpu/engine_rig.hpp"

namespace kvtide::gpu {

class real_rig final : public engine_rig {
public:
  explicit real_rig(host_engine_config config = {})
    : engine_rig(std::move(config)) {
    config_.events = std::make_shared<host_event_table>();
    start(make_host_copy_engine(config_));
  }

  ~real_rig() override {
    destroy_engine();
  }

  compute_event begin_compute() override {
    return {config_.events->create().value()};
  }

  void end_compute(compute_event event,
                   const std::function<void()>& write) override {
    run_a_little();
    write();
    end_compute(event);
  }

  void end_compute(compute_event event) override {
    EXPECT_TRUE(config_.events->complete(event.handle));
  }

  void run(std::size_t jobs) override {
    for (poll(); done.size() < jobs; poll())
      if (!wake_.wait(patience)) {
        ADD_FAILURE() << "the engine is silent, " << done.size() << " of "
                      << jobs << " jobs were reported";
        return;
      }
  }

  void run_a_little() override {
    while (wake_.wait(std::chrono::milliseconds{10}))
      poll();
    poll();
  }

  bool open(const std::optional<fence>& f, step_id step) override {
    poll();
    return f.has_value()
        || std::find(fences.begin(), fences.end(), step) != fences.end();
  }

  host_event_table& events() {
    return *config_.events;
  }
};

class virtual_rig final : public engine_rig {
public:
  explicit virtual_rig(host_engine_config config = {})
    : engine_rig(std::move(config)) {
    start(make_virtual_copy_engine(config_));
  }

  ~virtual_rig() override {
    destroy_engine();
  }

  compute_event begin_compute() override {
    next_event_ += 1'000'000;
    return {static_cast<std::uint64_t>(next_event_)};
  }

  void end_compute(compute_event event,
                   const std::function<void()>& write) override {
    const auto end = static_cast<nanoseconds_t>(event.handle);
    advance(end - 1);
    write();
    advance(end);
  }

  void end_compute(compute_event event) override {
    advance(static_cast<nanoseconds_t>(event.handle));
  }

  void run(std::size_t jobs) override {
    settle();
    while (done.size() < jobs && engine_->next_due() != never)
      advance(engine_->next_due());
    EXPECT_GE(done.size(), jobs);
  }

  void run_a_little() override {
    // Events are far apart, so that no test job lasts from one to the next.
    advance(now_ + 100'000);
  }

  bool open(const std::optional<fence>& f, step_id) override {
    return f->kind == fence::kind_t::none
        || f->handle <= static_cast<std::uint64_t>(now_);
  }

  /// Waits until the threads have nothing to copy, then polls.
  void settle() {
    while (!engine_->advanced())
      if (!wake_.wait(patience)) {
        ADD_FAILURE() << "the engine is silent";
        return;
      }
    poll();
  }

  /// Moves time event by event.
  void advance(nanoseconds_t now) {
    settle();
    while (engine_->next_due() <= now) {
      now_ = std::max(now_, engine_->next_due());
      engine_->advance(now_);
      settle();
    }
    now_ = std::max(now_, now);
    engine_->advance(now_);
    settle();
  }

  nanoseconds_t now() const {
    return now_;
  }

private:
  nanoseconds_t now_ = 0;
  nanoseconds_t next_event_ = 0;
};

} // namespace kvtide::gpu
