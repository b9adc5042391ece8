// SPDX-License-Identifier: Apache-2.0

#include "tests/serve_http/fake_engine.hpp"

namespace serve {

namespace {

constexpr auto abort_patience = std::chrono::seconds{10};

} // namespace

void fake_engine::refuse_with(kvtide::error reason) {
  const auto lock = std::lock_guard{mutex_};
  refusal_ = std::move(reason);
}

completion_id fake_engine::wait_for_submits(std::size_t count,
                                            std::chrono::seconds patience) {
  auto lock = std::unique_lock{mutex_};
  const auto came = changed_.wait_for(lock, patience,
                                      [&] { return entries_.size() >= count; });
  return came ? entries_.rbegin()->first : 0;
}

bool fake_engine::wait_for_abort(completion_id id) {
  auto lock = std::unique_lock{mutex_};
  return changed_.wait_for(lock, abort_patience,
                           [&] { return entries_[id].aborted; });
}

bool fake_engine::aborted(completion_id id) {
  const auto lock = std::lock_guard{mutex_};
  return entries_[id].aborted;
}

completion_request fake_engine::request(completion_id id) {
  const auto lock = std::lock_guard{mutex_};
  return entries_[id].request;
}

void fake_engine::say(completion_id id, std::string_view text) {
  auto call = std::function<void(std::string_view)>{};
  {
    const auto lock = std::lock_guard{mutex_};
    call = entries_[id].callbacks.on_text;
  }
  if (call)
    call(text);
}

void fake_engine::end(completion_id id, completion_end why) {
  auto call = std::function<void(completion_end)>{};
  {
    const auto lock = std::lock_guard{mutex_};
    call = std::exchange(entries_[id].callbacks, {}).on_end;
  }
  if (call)
    call(why);
}

kvtide::result<completion_id>
fake_engine::submit(completion_request request,
                    completion_callbacks callbacks) {
  const auto lock = std::lock_guard{mutex_};
  if (refusal_.code != kvtide::ec::none)
    return refusal_;
  const auto id = static_cast<completion_id>(entries_.size() + 1);
  entries_[id] = entry{std::move(request), std::move(callbacks)};
  changed_.notify_all();
  return id;
}

void fake_engine::abort(completion_id id) {
  if (obedient)
    end(id, completion_end::aborted);
  const auto lock = std::lock_guard{mutex_};
  entries_[id].aborted = true;
  changed_.notify_all();
}

void fake_engine::ask_stats(std::function<void(const engine_stats&)> done) {
  if (has_stats)
    done({});
}

} // namespace serve
