// SPDX-License-Identifier: Apache-2.0

#include "net/porter.hpp"

#include "net/sockets.hpp"
#include "net/tls_errors.hpp"

#include <caf/actor_system.hpp>
#include <caf/io/middleman.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <sys/socket.h>
#include <system_error>
#include <utility>

namespace kvtide::net {

namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

/// How often those are looked at of whom only time can say something.
constexpr auto longest_nap = 100ms;

/// How long nothing is accepted after the process ran out of descriptors.
constexpr auto accept_pause = 100ms;

/// Connections accepted in a row before others get their turn.
constexpr auto accepts_in_a_row = 32;

} // namespace

porter::porter(settings config) : config_(std::move(config)) {
  // nop
}

porter::~porter() {
  stop();
}

error porter::start() {
  auto wake = ready_fd::create();
  if (!wake)
    return wake.failure();
  wake_ = std::make_unique<ready_fd>(std::move(wake).value());
  try {
    thread_ = std::thread{[this] { run(); }};
  } catch (const std::system_error& x) {
    return {ec::out_of_memory,
            std::string{"cannot start the thread of the network: "} + x.what()};
  }
  return {};
}

void porter::open_gate(unique_fd listener, admit_fun admit) {
  const auto guard = std::lock_guard{mutex_};
  new_listener_ = std::move(listener);
  new_admit_ = std::move(admit);
  gate_changed_ = true;
  wake_->signal();
}

void porter::shut_gate() {
  open_gate({}, nullptr);
}

void porter::dial(find_fun find, dialed_fun answer) {
  const auto guard = std::lock_guard{mutex_};
  orders_.push_back({std::move(find), std::move(answer)});
  wake_->signal();
}

void porter::stop() {
  {
    const auto guard = std::lock_guard{mutex_};
    stopping_ = true;
  }
  if (!thread_.joinable())
    return;
  wake_->signal();
  thread_.join();
}

void porter::run() {
  for (;;) {
    wake_->clear();
    {
      const auto guard = std::lock_guard{mutex_};
      if (stopping_)
        break;
    }
    take_orders();
    wait_for_events();
    look_at_visitors();
    look_at_guests();
    if (!polled_.empty() && polled_[1].revents != 0)
      accept_all();
  }
  listener_ = {};
  admit_ = nullptr;
  visitors_.clear();
  guests_.clear();
}

void porter::take_orders() {
  auto orders = std::vector<order>{};
  {
    const auto guard = std::lock_guard{mutex_};
    orders.swap(orders_);
    if (std::exchange(gate_changed_, false)) {
      listener_ = std::exchange(new_listener_, {});
      admit_ = std::exchange(new_admit_, nullptr);
      if (!listener_)
        std::erase_if(visitors_, [](const auto& x) { return !x.answer; });
    }
  }
  for (const auto& x : orders)
    begin(x);
}

void porter::begin(const order& x) {
  auto found = x.find();
  if (!found)
    return x.answer({nullptr, found.failure().text});
  auto out = visitor{};
  out.answer = x.answer;
  out.others = std::move(found).value();
  std::reverse(out.others.begin(), out.others.end());
  if (try_next(out, "it has no address"))
    visitors_.push_back(std::move(out));
}

void porter::wait_for_events() {
  const auto now = clock::now();
  const auto accepting = listener_ && now >= paused_until_;
  polled_.clear();
  polled_.push_back({wake_->get(), POLLIN, 0});
  polled_.push_back({accepting ? listener_.get() : -1, POLLIN, 0});
  auto due = now + 1h;
  for (const auto& x : visitors_) {
    const auto writes = x.at == stage::connecting || x.wants_write;
    polled_.push_back(
      {x.fd.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
    due = std::min(due, x.deadline);
  }
  if (!guests_.empty())
    due = std::min(due, now + longest_nap);
  if (listener_ && !accepting)
    due = std::min(due, paused_until_);
  const auto left = std::chrono::ceil<milliseconds>(due - now).count();
  const auto count
    = ::poll(polled_.data(), polled_.size(),
             static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
  if (count < 0)
    for (auto& x : polled_)
      x.revents = 0;
}

void porter::look_at_visitors() {
  auto at = std::size_t{2};
  std::erase_if(visitors_,
                [&](auto& x) { return !serve(x, polled_[at++].revents != 0); });
}

void porter::look_at_guests() {
  const auto now = clock::now();
  std::erase_if(guests_, [&](const auto& x) {
    if (x.peer->spoke() || x.peer->closed())
      return true;
    if (now < x.deadline)
      return false;
    x.peer->drop_later("it said nothing for " + patience_text());
    return true;
  });
}

void porter::accept_all() {
  for (auto i = 0; i < accepts_in_a_row; ++i) {
    auto fd = unique_fd{::accept4(listener_.get(), nullptr, nullptr,
                                  SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (fd) {
      receive(std::move(fd));
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS
        || errno == ENOMEM) {
      config_.home->refusals.note("a peer", std::strerror(errno));
      paused_until_ = clock::now() + accept_pause;
    }
    if (errno != EINTR && errno != ECONNABORTED)
      return;
  }
}

void porter::receive(unique_fd fd) {
  auto x = visitor{};
  x.fd = std::move(fd);
  x.peer = to_string(peer_of(x.fd.get()));
  x.deadline = clock::now() + config_.patience;
  bound_patience(x.fd.get(), config_.home->detection);
  if (config_.home->connections + visitors_.size() >= most_connections)
    return turn_away(x, "there are too many connections");
  make_room();
  if (config_.tls)
    visitors_.push_back(std::move(x));
  else
    hand_over(x);
}

void porter::make_room() {
  if (unproven() < most_unproven)
    return;
  const auto why = std::string{"it did not say who it is, and others wait"};
  const auto oldest = std::find_if(visitors_.begin(), visitors_.end(),
                                   [](const auto& x) { return !x.answer; });
  if (oldest != visitors_.end()) {
    turn_away(*oldest, why);
    visitors_.erase(oldest);
  } else if (!guests_.empty()) {
    guests_.front().peer->drop_later(why);
    guests_.pop_front();
  }
}

bool porter::serve(visitor& x, bool ready) {
  auto why = std::string{};
  const auto how = ready ? advance(x, why) : progress::more;
  if (how == progress::done) {
    hand_over(x);
    return false;
  }
  if (how == progress::more) {
    if (clock::now() < x.deadline)
      return true;
    why = "no answer for " + patience_text();
  }
  if (x.answer)
    return try_next(x, std::move(why));
  turn_away(x, std::move(why));
  return false;
}

porter::progress porter::advance(visitor& x, std::string& why) {
  if (x.at == stage::connecting) {
    if (const auto code = connect_outcome(x.fd.get()); code != 0) {
      why = std::strerror(code);
      return progress::failed;
    }
    x.at = config_.tls ? stage::shaking : stage::listening;
    if (!config_.tls)
      return progress::more;
  }
  if (x.at == stage::listening)
    return progress::done;
  const auto how = shake(x, why);
  if (how != progress::done || !x.answer)
    return how;
  x.at = stage::listening;
  return progress::more;
}

porter::progress porter::shake(visitor& x, std::string& why) {
  const auto fail = [&](const std::string& detail) {
    why = "the TLS handshake failed: " + detail;
    return progress::failed;
  };
  const auto fail_as_openssl_says = [&] {
    const auto text = tls_errors();
    return fail(text.empty() ? "the connection was closed" : text);
  };
  forget_tls_errors();
  if (x.session == nullptr) {
    // CAF reads the files again for each session, and throws if it cannot.
    try {
      x.session
        = caf::openssl::make_session(*config_.system, x.fd.get(), !x.answer);
    } catch (const std::exception& fault) {
      const auto text = tls_errors();
      return fail(std::string{"own files: "} + fault.what() + ": " + text);
    }
    if (x.session == nullptr)
      return fail_as_openssl_says();
  }
  // Nothing is read or written here: CAF's session only goes on with the
  // handshake, and tells by the way it returns how far that is.
  using caf::io::network::rw_state;
  auto none = char{};
  auto count = std::size_t{0};
  const auto read
    = [&] { return x.session->read_some(count, x.fd.get(), &none, 0); };
  auto state = read();
  x.wants_write = false;
  if (state == rw_state::success) {
    x.wants_write
      = x.session->write_some(count, x.fd.get(), &none, 0) == rw_state::success;
    if (!x.wants_write)
      state = read();
  }
  if (state == rw_state::failure)
    return fail_as_openssl_says();
  return state == rw_state::success ? progress::more : progress::done;
}

bool porter::try_next(visitor& x, std::string why) {
  while (!x.others.empty()) {
    const auto where = x.others.back();
    x.others.pop_back();
    x.session = nullptr;
    x.wants_write = false;
    x.peer = to_string(where);
    x.fd = unique_fd{};
    x.fd = start_to_connect(where);
    if (x.fd) {
      bound_patience(x.fd.get(), config_.home->detection);
      x.at = stage::connecting;
      x.deadline = clock::now() + config_.patience;
      return true;
    }
    why = std::strerror(errno);
  }
  x.answer({nullptr, std::move(why)});
  return false;
}

void porter::turn_away(visitor& x, std::string why) {
  config_.home->refusals.note(x.peer, why);
}

void porter::hand_over(visitor& x) {
  if (x.answer) {
    x.answer({connect(x, connection::side::dialed), {}});
    return;
  }
  auto peer = connect(x, connection::side::accepted);
  guests_.push_back({peer, clock::now() + config_.patience});
  admit_(std::move(peer));
}

connection_ptr porter::connect(visitor& x, connection::side from) {
  auto& mpx = static_cast<connection::multiplexer&>(
    config_.system->middleman().backend());
  return caf::make_counted<connection>(mpx, std::move(x.fd),
                                       std::move(x.session), std::move(x.peer),
                                       from, config_.home);
}

std::size_t porter::unproven() const {
  const auto visiting = std::count_if(visitors_.begin(), visitors_.end(),
                                      [](const auto& x) { return !x.answer; });
  return static_cast<std::size_t>(visiting) + guests_.size();
}

std::string porter::patience_text() const {
  return std::to_string(config_.patience.count()) + " ms";
}

} // namespace kvtide::net
