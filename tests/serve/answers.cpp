// SPDX-License-Identifier: Apache-2.0

#include "tests/serve/answers.hpp"

#include <utility>

namespace serve::test {

std::optional<std::size_t>
answers::ask(completion_request request,
             std::function<void(completion_id, std::size_t)> on_text) {
  auto guard = std::unique_lock{mutex_};
  const auto index = answers_.size();
  answers_.emplace_back();
  ++open_;
  guard.unlock();
  auto callbacks = completion_callbacks{};
  callbacks.on_text = [this, index, on_text](std::string_view text) {
    auto lock = std::unique_lock{mutex_};
    // The first text may come before `submit` has returned.
    changed_.wait_for(lock, patience,
                      [this, index] { return answers_[index].id != 0; });
    auto& mine = answers_[index];
    mine.late_text = mine.late_text || mine.end;
    mine.text += text;
    const auto size = mine.text.size();
    const auto id = mine.id;
    lock.unlock();
    changed_.notify_all();
    if (on_text)
      on_text(id, size);
  };
  callbacks.on_end = [this, index](completion_end why) {
    const auto lock = std::lock_guard{mutex_};
    auto& mine = answers_[index];
    mine.end = why;
    ++mine.ends;
    --open_;
    changed_.notify_all();
  };
  const auto id = engine_.submit(std::move(request), std::move(callbacks));
  guard.lock();
  if (!id) {
    --open_;
    return std::nullopt;
  }
  answers_[index].id = id.value();
  changed_.notify_all();
  return index;
}

bool answers::wait_for_open(std::size_t count) {
  auto guard = std::unique_lock{mutex_};
  return changed_.wait_for(guard, patience,
                           [this, count] { return open_ <= count; });
}

bool answers::wait_for_text(std::size_t index, std::size_t bytes) {
  auto guard = std::unique_lock{mutex_};
  return changed_.wait_for(guard, patience, [this, index, bytes] {
    return answers_[index].text.size() >= bytes || answers_[index].end;
  });
}

answer answers::at(std::size_t index) const {
  const auto guard = std::lock_guard{mutex_};
  return answers_[index];
}

std::vector<answer> answers::all() const {
  const auto guard = std::lock_guard{mutex_};
  return answers_;
}

} // namespace serve::test
