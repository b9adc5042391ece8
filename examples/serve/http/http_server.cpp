// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/http_server.hpp"

#include "examples/serve/http/connection.hpp"
#include "examples/serve/http/server_state.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace serve {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// After an accept that failed for a reason that nothing here can end.
constexpr auto accept_pause = std::chrono::milliseconds{100};

const std::string& too_many() {
  static const auto text = [] {
    const auto body = make_error(503, "too_many_connections",
                                 "There are too many connections; try again "
                                 "later.")
                        .body;
    return "HTTP/1.1 503 Service Unavailable\r\n"
           "Content-Type: application/json\r\n"
           "Content-Length: "
         + std::to_string(body.size())
         + "\r\nRetry-After: 1\r\nConnection: close\r\n\r\n" + body;
  }();
  return text;
}

/// A descriptor that is given up for a moment when there are no others, so that
/// whoever waits is told so.
class spare_file {
public:
  spare_file() : fd_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {
    // nop
  }

  spare_file(const spare_file&) = delete;
  spare_file& operator=(const spare_file&) = delete;

  ~spare_file() {
    give_up();
  }

  [[nodiscard]] bool there() const noexcept {
    return fd_ >= 0;
  }

  void give_up() noexcept {
    if (there())
      close(std::exchange(fd_, -1));
  }

  void take_back() noexcept {
    if (!there())
      fd_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  }

private:
  int fd_;
};

bool no_files(const error_code& why) {
  return why == boost::system::errc::too_many_files_open
      || why == boost::system::errc::too_many_files_open_in_system;
}

// Whoever waited, before it was accepted.
bool went_away(const error_code& why) {
  return why == asio::error::would_block
      || why == asio::error::connection_aborted;
}

kvtide::error too_few_files() {
  return {kvtide::ec::out_of_memory,
          "The system refuses the files that a server needs; allow more open "
          "files for this process, for example with 'ulimit -n 1100'."};
}

} // namespace

struct http_server::impl {
  impl(const server_options& opts, completion_engine& engine)
    : state{opts, engine}, acceptor{state.io}, signals{state.io},
      pause{state.io}, deadline{state.io} {
    state.on_less = [this] { stop_if_done(); };
  }

  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  ~impl() {
    close_all();
  }

  kvtide::error open() {
    if (!spare.there())
      return too_few_files();
    const auto fail = [this](const error_code& why) {
      if (no_files(why))
        return too_few_files();
      return kvtide::error{
        kvtide::ec::invalid_options,
        "Cannot listen on " + state.opts.address + " port "
          + std::to_string(state.opts.port) + ": " + why.message()
          + "; name a free port of a numeric address of this "
            "machine."};
    };
    auto why = error_code{};
    const auto address = asio::ip::make_address(state.opts.address, why);
    if (why)
      return {kvtide::ec::invalid_options,
              "Cannot listen on " + state.opts.address
                + ": names are not looked up; give a numeric address of this "
                  "machine, for example 127.0.0.1 or [::1]."};
    const auto endpoint = tcp::endpoint{address, state.opts.port};
    acceptor.open(endpoint.protocol(), why);
    if (!why)
      acceptor.set_option(asio::socket_base::reuse_address{true}, why);
    if (!why)
      acceptor.bind(endpoint, why);
    if (!why)
      acceptor.listen(asio::socket_base::max_listen_connections, why);
    // Whoever waited may have gone before it is accepted; accepting does not
    // wait for somebody else then.
    if (!why)
      acceptor.non_blocking(true, why);
    if (!why)
      acceptor.set_option(asio::socket_base::enable_connection_aborted{true},
                          why);
    if (!why)
      port = acceptor.local_endpoint(why).port();
    // From here on a signal waits for `run`, so that whoever has heard of the
    // port may already send one.
    if (!why)
      signals.add(SIGINT, why);
    if (!why)
      signals.add(SIGTERM, why);
    return why ? fail(why) : kvtide::error{};
  }

  // -- clients ----------------------------------------------------------------

  // Waits first: an accept asks for a file before it looks whether anybody is
  // there, and would fail without files as long as nobody comes.
  void await_client() {
    spare.take_back();
    acceptor.async_wait(tcp::acceptor::wait_read,
                        [this](const error_code& why) {
                          if (!acceptor.is_open())
                            return;
                          if (!why && accept()) {
                            await_client();
                            return;
                          }
                          pause.expires_after(accept_pause);
                          pause.async_wait([this](const error_code& cancelled) {
                            if (!cancelled && acceptor.is_open())
                              await_client();
                          });
                        });
  }

  // False if nothing can be done for whoever waits.
  bool accept() {
    auto why = error_code{};
    auto socket = acceptor.accept(why);
    if (!why) {
      welcome(std::move(socket));
      return true;
    }
    if (no_files(why)) {
      // That it is turned away is all that it can be told.
      spare.give_up();
      socket = acceptor.accept(why);
      if (!why)
        refuse(socket);
    }
    return !why || went_away(why);
  }

  // All that is done for it is one write that cannot wait.
  void refuse(tcp::socket& socket) {
    auto ignored = error_code{};
    state.metrics.connection_refused();
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(too_many()), ignored);
  }

  void welcome(tcp::socket socket) {
    if (state.connections.size() >= state.opts.max_connections) {
      refuse(socket);
      return;
    }
    auto ignored = error_code{};
    socket.set_option(tcp::no_delay{true}, ignored);
    if (const auto bytes = state.opts.socket_send_bytes; bytes > 0)
      socket.set_option(asio::socket_base::send_buffer_size{bytes}, ignored);
    std::make_shared<connection>(state, std::move(socket))->start();
  }

  // Connections remove themselves from the set.
  template <class F>
  void for_all(F f) {
    const auto all = std::vector<connection*>(state.connections.begin(),
                                              state.connections.end());
    for (auto* one : all)
      if (state.connections.count(one) > 0)
        f(*one);
  }

  void close_all() {
    for_all([](connection& one) { one.close(); });
  }

  // -- the end ----------------------------------------------------------------

  void await_signal() {
    signals.async_wait([this](const error_code& cancelled, int) {
      if (cancelled)
        return;
      if (!state.draining)
        drain();
      else if (!hurried)
        cut_off();
      // Later ones change nothing: what is left ends within its own time.
      await_signal();
    });
  }

  void drain() {
    if (state.draining)
      return;
    state.draining = true;
    auto ignored = error_code{};
    acceptor.close(ignored);
    pause.cancel();
    for_all([](connection& one) { one.drain(); });
    deadline.expires_after(state.opts.drain);
    deadline.async_wait([this](const error_code& cancelled) {
      if (!cancelled)
        cut_off();
    });
    stop_if_done();
  }

  void cut_off() {
    hurried = true;
    for_all([](connection& one) { one.cut_off(); });
    deadline.expires_after(state.opts.last_answers);
    deadline.async_wait([this](const error_code& cancelled) {
      if (!cancelled)
        state.io.stop();
    });
  }

  void stop_if_done() {
    if (state.draining && state.connections.empty()
        && state.open_completions == 0)
      state.io.stop();
  }

  server_state state;
  /// Kept, as other threads may ask while the socket is being closed.
  std::uint16_t port = 0;
  /// What ran was cut off.
  bool hurried = false;
  tcp::acceptor acceptor;
  spare_file spare;
  asio::signal_set signals;
  /// Between two accepts.
  asio::steady_timer pause;
  /// Of draining, then of the answers.
  asio::steady_timer deadline;
};

kvtide::result<std::unique_ptr<http_server>>
http_server::listen(const server_options& opts, completion_engine& engine) {
  try {
    auto ptr = std::make_unique<impl>(opts, engine);
    if (auto failure = ptr->open(); failure.code != kvtide::ec::none)
      return failure;
    return std::unique_ptr<http_server>{new http_server{std::move(ptr)}};
  } catch (const boost::system::system_error& failure) {
    // The loop and the signals report what they need of the system this way.
    return no_files(failure.code())
           ? too_few_files()
           : kvtide::error{kvtide::ec::out_of_memory,
                           "The system refuses what a server needs: "
                             + failure.code().message() + "."};
  }
}

http_server::http_server(std::unique_ptr<impl> ptr) noexcept
  : impl_(std::move(ptr)) {
  // nop
}

http_server::~http_server() = default;

std::uint16_t http_server::port() const noexcept {
  return impl_->port;
}

drain_report http_server::run() {
  auto& state = impl_->state;
  impl_->await_signal();
  impl_->await_client();
  // Completions end on the engine's threads, which this thread has to wait for.
  const auto work = asio::make_work_guard(state.io);
  state.io.run();
  // Signals stay caught, or one that comes now would end the process.
  impl_->close_all();
  return {state.finished, state.cut_off, state.open_completions};
}

void http_server::stop() {
  asio::post(impl_->state.io, [this] { impl_->drain(); });
}

} // namespace serve
