// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/remote_lane.hpp"

#include <cstring>
#include <memory>
#include <utility>

namespace kvtide::replay {

template <class Read>
auto remote_lane::read(const nlohmann::json& message, Read as) const {
  try {
    return as(message);
  } catch (const stream_error& failure) {
    lose(failure.what());
  }
}

std::unique_ptr<remote_lane> remote_lane::dial(const replay_options& opts,
                                               rank_id rank,
                                               const std::string& path) {
  auto socket = connect_to(path);
  if (!socket)
    return nullptr;
  auto res = std::unique_ptr<remote_lane>{
    new remote_lane{opts, rank, std::move(*socket)}};
  res->ask(hello_of(opts, rank), "hello");
  return res;
}

remote_lane::remote_lane(const replay_options& opts, rank_id rank,
                         unique_fd socket)
  : rank_(rank), limit_(opts.lane_limit()), stream_(std::move(socket)) {
  // nop
}

std::optional<std::uint64_t> remote_lane::take_greeting() {
  auto answer = std::optional<nlohmann::json>{};
  try {
    answer = stream_.receive(wall_clock::now());
    if (!answer)
      return std::nullopt; // A process that is stopped takes its time.
    open_.clear();
    if (word_of(*answer) == "error")
      throw bad_configuration{"rank " + std::to_string(rank_) + ": "
                              + error_of(*answer)};
    return greeting_of(*answer).life;
  } catch (const stream_error& failure) {
    lose(failure.what());
  }
}

// -- memory -------------------------------------------------------------------

void remote_lane::register_kv() {
  ask(word_message("register"), "registered");
}

kv_registered remote_lane::await_registered() {
  auto res = read(await("registered"), registered_of);
  res.rank = rank_;
  return res;
}

void remote_lane::unregister_kv() {
  ask(word_message("unregister"), "unregistered");
}

void remote_lane::await_unregistered() {
  await("unregistered");
}

// -- steps --------------------------------------------------------------------

void remote_lane::begin_step(step_id step, const std::string& plan) {
  ask(begin_message(step, plan), "ready");
}

readiness remote_lane::await_ready(step_id step) {
  const auto answer = await("ready");
  if (const auto said = read(answer, step_of); said != step)
    lose("is ready for step " + std::to_string(said) + " instead of "
         + std::to_string(step));
  return read(answer, readiness_of);
}

void remote_lane::compute(const kv_work& work) {
  unsettled_ = true;
  ask(to_message(work), "computed");
}

void remote_lane::end_step(step_id step, nanoseconds_t end) {
  ask(end_message(step, end), "");
}

void remote_lane::settle() {
  settling_ = std::exchange(unsettled_, false);
  if (settling_)
    ask(word_message("settle"), "settled");
}

void remote_lane::await_settled() {
  if (std::exchange(settling_, false))
    await("settled");
}

check_tally remote_lane::take_tally() {
  return std::exchange(tally_, {});
}

copy_work remote_lane::get_copies() {
  ask(word_message("stats"), "stats");
  return read(await("stats"), copies_of);
}

// -- helpers ------------------------------------------------------------------

void remote_lane::ask(const nlohmann::json& message, const char* answer) {
  const auto due = wall_clock::now() + limit_;
  try {
    stream_.send(message, due);
  } catch (const stream_error& failure) {
    lose(failure.what());
  }
  if (*answer != '\0')
    open_.push_back({answer, due});
}

nlohmann::json remote_lane::await(const char* answer) {
  try {
    for (;;) {
      const auto wanted = std::strcmp(open_.front().answer, answer) == 0;
      auto message = take_answer(open_.front().due);
      if (wanted)
        return message;
    }
  } catch (const stream_error& failure) {
    lose(failure.what());
  }
}

nlohmann::json remote_lane::take_answer(wall_clock::time_point until) {
  auto message = stream_.receive(until);
  if (!message)
    lose("has not answered for too long");
  const auto word = word_of(*message);
  if (word == "error")
    lose(error_of(*message));
  if (word != open_.front().answer)
    lose("answered \"" + word + "\" instead of \""
         + std::string{open_.front().answer} + "\"");
  open_.pop_front();
  if (word == "computed")
    tally_.add(tally_of(*message));
  return std::move(*message);
}

void remote_lane::lose(const std::string& why) const {
  throw lane_lost{"rank " + std::to_string(rank_) + ": " + why};
}

} // namespace kvtide::replay
