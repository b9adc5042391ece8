// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/engine/serving_engine.hpp"

#include "examples/serve/engine/engine_loop.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace serve {

namespace {

using kvtide::ec;
using kvtide::error;

error fault_of(const engine_options& opts) {
  if (opts.max_tokens < 2 || opts.device_blocks < 2 || opts.tokens_per_block < 1
      || opts.blocks_per_chunk < 1 || opts.max_batch < 1 || opts.step_tokens < 1
      || opts.queue_limit < 1)
    return {ec::invalid_options,
            "max_tokens and device_blocks must be at least 2; "
            "tokens_per_block, blocks_per_chunk, max_batch, step_tokens and "
            "queue_limit at least 1"};
  return {};
}

} // namespace

/// What threads share: the door, the board, and what stands here.
struct serving_engine::impl {
  impl(const engine_options& options, wake_fd fd)
    : opts(options), door(std::move(fd)),
      tables(model_shape{opts.variant}, opts.tokens_per_block, 0) {
    // nop
  }

  /// The engine's thread.
  void run(std::promise<error> started) {
    auto loop = std::unique_ptr<engine_loop>{};
    auto reason = error{};
    try {
      loop = std::make_unique<engine_loop>(opts, door, board, queued);
      reason = loop->start();
    } catch (const std::bad_alloc&) {
      reason = {ec::out_of_memory,
                "the machine has not enough memory for device_blocks"};
    } catch (const std::system_error&) {
      reason = {ec::out_of_memory,
                "the system refuses a thread: allow more for this process"};
    }
    const auto failed = reason.code != ec::none;
    started.set_value(std::move(reason));
    if (!failed)
      report.set_value(loop->run());
    // Copies that never end would keep the loop: whoever stops it has heard.
  }

  [[nodiscard]] error fault_of(const completion_request& request) const {
    if (request.prompt.empty())
      return {ec::invalid_argument,
              "the prompt is empty: send at least a byte"};
    if (request.max_tokens < 1)
      return {ec::invalid_argument, "max_tokens must be at least 1"};
    const auto most = static_cast<std::uint64_t>(opts.max_tokens);
    const auto asked = static_cast<std::uint64_t>(request.max_tokens);
    if (request.prompt.size() > most || asked > most - request.prompt.size())
      return {ec::invalid_argument,
              "prompt and answer would have more than "
                + std::to_string(opts.max_tokens)
                + " tokens: shorten the prompt, or ask for less"};
    const auto length
      = static_cast<kvtide::token_count>(request.prompt.size() + asked);
    if (tables.most_needed(length, opts.step_tokens) > opts.device_blocks)
      return {ec::invalid_argument,
              "prompt and answer do not fit into the device's "
                + std::to_string(opts.device_blocks) + " blocks"};
    return {};
  }

  const engine_options opts;
  inbox door;
  stats_board board;
  /// Requests that were never admitted.
  std::atomic<std::uint32_t> queued{0};
  std::atomic<std::uint64_t> refused{0};
  /// Without blocks: only says how many a request needs.
  const block_tables tables;
  /// Makes `closed` and what goes through the door one order: behind the
  /// request to stop comes nobody.
  std::mutex mutex;
  bool closed = false;
  completion_id last_id = 0;
  std::thread thread;
  /// Set by the engine's thread at its end.
  std::promise<stop_report> report;
  const std::shared_future<stop_report> stopped{report.get_future()};
};

serving_engine::serving_engine(std::unique_ptr<impl> ptr) noexcept
  : impl_(std::move(ptr)) {
  // nop
}

serving_engine::~serving_engine() {
  stop(std::chrono::milliseconds{0});
  impl_->thread.join();
}

kvtide::result<std::unique_ptr<serving_engine>>
serving_engine::start(const engine_options& opts) {
  if (auto fault = fault_of(opts); fault.code != ec::none)
    return fault;
  auto fd = wake_fd::make();
  if (!fd)
    return fd.failure();
  auto made = std::make_unique<impl>(opts, std::move(fd).value());
  auto& parts = *made;
  auto started = std::promise<error>{};
  auto reason = started.get_future();
  try {
    parts.thread
      = std::thread{[&parts, promise = std::move(started)]() mutable {
          parts.run(std::move(promise));
        }};
  } catch (const std::system_error&) {
    return error{ec::out_of_memory,
                 "the system refuses a thread: allow more for this process"};
  }
  if (auto why = reason.get(); why.code != ec::none) {
    parts.thread.join();
    return why;
  }
  return std::unique_ptr<serving_engine>{new serving_engine{std::move(made)}};
}

kvtide::result<completion_id>
serving_engine::submit(completion_request request,
                       completion_callbacks callbacks) {
  auto& parts = *impl_;
  const auto refuse = [&parts](error why) {
    parts.refused.fetch_add(1);
    return why;
  };
  if (auto fault = parts.fault_of(request); fault.code != ec::none)
    return refuse(std::move(fault));
  const auto guard = std::lock_guard{parts.mutex};
  if (parts.closed)
    return refuse({ec::shutting_down, "the engine is stopping"});
  // Grows only here, so it is not above the limit for long.
  if (parts.queued.load() >= parts.opts.queue_limit)
    return refuse({ec::out_of_memory, "the queue is full: try again later"});
  parts.queued.fetch_add(1);
  const auto id = ++parts.last_id;
  parts.door.post(submitted{id, std::move(request), std::move(callbacks)});
  return id;
}

void serving_engine::abort(completion_id id) {
  impl_->door.post(abort_request{id});
}

engine_stats serving_engine::stats() const {
  (void)impl_->board.ask();
  impl_->door.post(stats_wanted{});
  auto res = impl_->board.latest();
  res.refused = impl_->refused.load();
  return res;
}

std::optional<engine_stats>
serving_engine::fresh_stats(std::chrono::milliseconds timeout) const {
  if (std::this_thread::get_id() == impl_->thread.get_id())
    return std::nullopt;
  const auto question = impl_->board.ask();
  impl_->door.post(stats_wanted{});
  auto res = impl_->board.await(question, timeout);
  if (res)
    res->refused = impl_->refused.load();
  return res;
}

stop_report serving_engine::stop(std::chrono::milliseconds deadline) {
  auto& parts = *impl_;
  {
    const auto guard = std::lock_guard{parts.mutex};
    if (!std::exchange(parts.closed, true)) {
      const auto wait
        = std::clamp(deadline, std::chrono::milliseconds{0},
                     std::chrono::milliseconds{kvtide::longest_wait});
      parts.door.post(stop_request{std::chrono::steady_clock::now() + wait});
    }
  }
  auto res = parts.stopped.get();
  res.last.refused = parts.refused.load();
  return res;
}

} // namespace serve
