// SPDX-License-Identifier: Apache-2.0

/// @file
/// Drives a copy engine in tests as a device actor would, on either clock.

#pragma once

#include "gpu/host_copy_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kvtide::gpu {

/// What a wake function sets and its owner waits for.
class wake_flag {
public:
  void set() {
    {
      const std::lock_guard lock{mutex_};
      set_ = true;
    }
    changed_.notify_all();
  }

  /// @returns false if nothing came for that long.
  bool wait(std::chrono::milliseconds longest) {
    std::unique_lock lock{mutex_};
    const auto woken
      = changed_.wait_for(lock, longest, [this] { return set_; });
    set_ = false;
    return woken;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

/// An engine, its owner's loop, and what it reported so far.
class engine_rig {
public:
  static constexpr std::chrono::milliseconds patience{20'000};

  explicit engine_rig(host_engine_config config) {
    config.wake = [this] { wake_.set(); };
    config_ = std::move(config);
  }

  virtual ~engine_rig() = default;

  copy_engine& engine() {
    return *engine_;
  }

  void destroy_engine() {
    engine_.reset();
  }

  void submit(copy_job job) {
    ASSERT_EQ(engine_->submit(std::move(job)), ec::none);
  }

  /// Makes an event that `end_compute` completes.
  virtual compute_event begin_compute() = 0;

  /// Lets all go on that does not wait for the event, lets the model write,
  /// and completes the event.
  virtual void end_compute(compute_event event,
                           const std::function<void()>& write)
    = 0;

  /// Completes the event at once.
  virtual void end_compute(compute_event event) = 0;

  /// Goes on until that many jobs were reported in all.
  virtual void run(std::size_t jobs) = 0;

  /// Goes on for a while, but completes no event. What is reported after it
  /// was free to go; what is not, need not be blocked.
  virtual void run_a_little() = 0;

  /// True if a fence lets compute go on by now.
  virtual bool open(const std::optional<fence>& f, step_id step) = 0;

  bool reported(job_id id) const {
    return outcome_of(id) != nullptr;
  }

  const completion* outcome_of(job_id id) const {
    for (const auto& outcome : done)
      if (outcome.job == id)
        return &outcome;
    return nullptr;
  }

  std::vector<job_id> order() const {
    std::vector<job_id> ids;
    for (const auto& outcome : done)
      ids.push_back(outcome.job);
    return ids;
  }

  std::vector<completion> done;
  std::vector<step_id> fences;

protected:
  void start(result<std::unique_ptr<copy_engine>> made) {
    if (!made.ok())
      throw std::runtime_error{made.failure().text};
    engine_ = std::move(made).value();
  }

  void poll() {
    engine_->poll(done, fences);
  }

  host_engine_config config_;
  // Outlives the engine, whose threads set it.
  wake_flag wake_;
  std::unique_ptr<copy_engine> engine_;
};

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

/// Blocks and slots of one fragment each, and jobs between them.
class test_memory {
public:
  static constexpr std::size_t unit = 64;

  test_memory(std::size_t blocks, std::size_t slots)
    : blocks_(blocks * unit), slots_(slots * unit) {
    // nop
  }

  std::uint8_t* block(std::size_t i) {
    return blocks_.data() + i * unit;
  }

  std::uint8_t* slot(std::size_t i) {
    return slots_.data() + i * unit;
  }

  void fill_block(std::size_t i, std::uint8_t value) {
    std::fill_n(block(i), unit, value);
  }

  void fill_slot(std::size_t i, std::uint8_t value) {
    std::fill_n(slot(i), unit, value);
  }

  /// The byte that fills a place, or nothing if it holds several.
  static std::optional<int> content(const std::uint8_t* place) {
    const auto same = std::all_of(place, place + unit,
                                  [place](auto x) { return x == *place; });
    return same ? std::optional<int>{*place} : std::nullopt;
  }

  std::optional<int> block_content(std::size_t i) {
    return content(block(i));
  }

  std::optional<int> slot_content(std::size_t i) {
    return content(slot(i));
  }

  /// Row i goes between `blocks[i]` and `slots[i]`.
  copy_job job(job_id id, job_kind kind, const std::vector<std::size_t>& blocks,
               const std::vector<slot_id>& slots) {
    copy_job made;
    made.id = id;
    made.kind = kind;
    made.slots = slots;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      auto* device = block(blocks[i]);
      auto* host = slot(slots[i]);
      made.fragments.push_back(
        kind == job_kind::store
          ? fragment{host, device, unit, static_cast<std::uint32_t>(i)}
          : fragment{device, host, unit, static_cast<std::uint32_t>(i)});
    }
    return made;
  }

  copy_job store(job_id id, std::size_t from, slot_id to) {
    return job(id, job_kind::store, {from}, {to});
  }

  copy_job load(job_id id, slot_id from, std::size_t to) {
    return job(id, job_kind::load, {to}, {from});
  }

  friend bool operator==(const test_memory& x, const test_memory& y) {
    return x.blocks_ == y.blocks_ && x.slots_ == y.slots_;
  }

private:
  std::vector<std::uint8_t> blocks_;
  std::vector<std::uint8_t> slots_;
};

} // namespace kvtide::gpu
