// SPDX-License-Identifier: Apache-2.0

#include "examples/worker/lane_host.hpp"

#include "examples/replay/lane_messages.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace kvtide::worker_program {

using namespace replay;

namespace {

using wall_clock = std::chrono::steady_clock;

// Between two looks at whether to stop.
constexpr auto glance = std::chrono::milliseconds{50};
// An engine that does not read for so long is none.
constexpr auto send_limit = std::chrono::seconds{10};

/// The engine closed its end while a call waited.
class engine_gone {};

/// The program was told to stop while a call waited.
class stopped {};

} // namespace

lane_host::lane_host(const replay_options& opts, rank_id id, kvtide::rank& side,
                     std::string path, std::uint64_t life,
                     const std::atomic<bool>& stop, line_sink say)
  : opts_(opts), id_(id), path_(std::move(path)), life_(life), stop_(stop),
    say_(std::move(say)), lane_(opts_, id, side, [this] { look_around(); }),
    listener_(listen_at(path_)) {
  // nop
}

lane_host::~lane_host() {
  unlink(path_.c_str());
}

void lane_host::run() {
  try {
    while (!stop_) {
      accept_engine();
      if (!engine_)
        continue;
      try {
        serve();
      } catch (const engine_gone&) {
        say_("the engine has left");
      } catch (const stream_error& failure) {
        say_(failure.what());
      } catch (const replay_failure& failure) {
        refuse(failure.what());
      }
      engine_.reset();
      take_memory_back();
    }
    take_memory_back();
  } catch (const stopped&) {
    // nop
  }
  engine_.reset(); // It is told by that.
}

void lane_host::accept_engine() {
  auto what = pollfd{listener_.get(), POLLIN, 0};
  if (poll(&what, 1, static_cast<int>(glance.count())) <= 0)
    return;
  auto socket
    = unique_fd{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (socket.get() >= 0)
    engine_.emplace(std::move(socket));
}

void lane_host::serve() {
  greeted_ = false;
  while (!stop_)
    if (const auto message = engine_->receive(wall_clock::now() + glance))
      answer(*message);
}

void lane_host::answer(const nlohmann::json& message) {
  const auto word = word_of(message);
  if (!greeted_) {
    auto fault = word == "hello" ? fault_of(hello_of(opts_, id_), message)
                                 : std::string{"an engine says hello first"};
    if (!fault.empty()) {
      send(error_message(fault));
      throw stream_error{"refused an engine: " + fault};
    }
    greeted_ = true;
    return send(to_message(lane_greeting{life_}));
  }
  if (word == "register") {
    lane_.register_kv();
    memory_ = memory_state::asked_for;
    send(to_message(await_memory()));
  } else if (word == "begin") {
    const auto step = step_of(message);
    lane_.begin_step(step, plan_of(message));
    send(to_message(step, lane_.await_ready(step)));
  } else if (word == "compute") {
    lane_.compute(work_of(message, opts_.shape));
    send(to_message(lane_.take_tally()));
  } else if (word == "end") {
    lane_.end_step(step_of(message), end_of(message));
  } else if (word == "settle") {
    lane_.settle();
    lane_.await_settled();
    send(word_message("settled"));
  } else if (word == "stats") {
    send(to_message(lane_.get_copies()));
  } else if (word == "unregister") {
    take_memory_back();
    send(word_message("unregistered"));
  } else {
    const auto fault = "an engine said \"" + word + "\", which is no command";
    send(error_message(fault));
    throw stream_error{fault};
  }
}

void lane_host::send(const nlohmann::json& message) {
  engine_->send(message, wall_clock::now() + send_limit);
}

void lane_host::refuse(const std::string& why) {
  say_(why);
  try {
    send(error_message(why));
  } catch (const stream_error&) {
    // It does not want to know.
  }
}

kv_registered lane_host::await_memory() {
  try {
    auto answer = lane_.await_registered();
    memory_ = memory_state::registered;
    return answer;
  } catch (const bad_configuration&) {
    memory_ = memory_state::none;
    throw;
  }
}

void lane_host::take_memory_back() {
  try {
    if (memory_ == memory_state::asked_for)
      static_cast<void>(await_memory());
    if (std::exchange(memory_, memory_state::none) == memory_state::none)
      return;
    lane_.unregister_kv();
    lane_.await_unregistered();
  } catch (const replay_failure& failure) {
    say_(failure.what());
  }
}

void lane_host::look_around() const {
  if (stop_)
    throw stopped{};
  if (engine_ && engine_->is_closed())
    throw engine_gone{};
}

} // namespace kvtide::worker_program
