// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/http/answer_writer.hpp"
#include "examples/serve/http/completion_answer.hpp"
#include "examples/serve/http/http_answer.hpp"
#include "examples/serve/http/route.hpp"
#include "examples/serve/http/server_state.hpp"

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace serve {

/// The completion that a connection waits for.
struct running_completion {
  completion_id id = 0;
  completion_head head;
  bool stream = false;
  std::chrono::steady_clock::time_point since;
  std::uint64_t tokens = 0;
  /// All of it, unless it is streamed.
  std::string text;
};

/// One client. Reads all the time, so that it notices when the client goes
/// away, and serves one request after the other.
///
/// Lives as long as one of its operations is under way, and at least until
/// `close`; `server_state` must outlive it. Thread-safety: the thread of the
/// sockets.
class connection : public std::enable_shared_from_this<connection> {
public:
  connection(server_state& state, boost::asio::ip::tcp::socket socket);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection();

  void start();

  /// Closes in order: now if nothing is being answered, else after that.
  void drain();
  /// Aborts the completion that runs, if any; its client hears why.
  void cut_off();
  /// Closes at once.
  void close();

  // -- from the engine --------------------------------------------------------

  void on_text(std::uint64_t number, std::string_view text);
  void on_end(std::uint64_t number, completion_end why);
  void on_stats(std::uint64_t number, const engine_stats& stats);

private:
  using clock = std::chrono::steady_clock;
  using request_parser
    = boost::beast::http::request_parser<boost::beast::http::string_body>;

  enum class phase : std::uint8_t {
    /// A request is awaited, or has come in part.
    reading,
    /// The engine has been asked, most often for a completion.
    waiting,
    /// All of the answer is known, and not all of it is sent.
    answering,
    /// Our direction is closed; what the client sends is dropped, so that it
    /// gets to read the answer before the socket is gone.
    lingering,
    closed,
  };

  // -- reading ----------------------------------------------------------------

  void read_more();
  void on_read(const boost::system::error_code& failure, std::size_t bytes);
  void on_client_gone();
  void parse();
  bool parse_some();
  void refuse_request(const boost::system::error_code& failure);
  void refuse_coding();
  void expect_request(std::chrono::milliseconds timeout);

  // -- serving ----------------------------------------------------------------

  void serve(const request_parser::value_type& request);
  void start_completion(completion_call call);
  void ask_stats();
  void abort_completion();
  void start_stream();
  void send_in_stream(std::string_view events);
  void answer(const http_answer& what);
  void finish_answer();
  void linger();

  // -- writing ----------------------------------------------------------------

  void send(std::string_view bytes);
  void write_more();
  void on_written(const boost::system::error_code& failure);

  // -- deadlines --------------------------------------------------------------

  void arm();
  void on_deadline();
  void drop_slow_reader();

  server_state& state_;
  boost::asio::ip::tcp::socket socket_;
  phase phase_ = phase::reading;

  /// Where the read that is under way puts what comes.
  std::array<char, 4'096> incoming_{};
  /// What came and is not parsed yet.
  std::string pending_;
  std::optional<request_parser> parser_;
  bool reading_ = false;
  /// "100 Continue" was sent for this request.
  bool continued_ = false;
  std::size_t dropped_bytes_ = 0;

  std::optional<running_completion> running_;
  /// Number of the answer for which the engine's counters are awaited; zero if
  /// they are not.
  std::uint64_t counters_for_ = 0;
  /// The request is of HTTP/1.0: its answer cannot be chunked.
  bool old_http_ = false;
  bool head_only_ = false;
  bool close_after_ = false;

  answer_writer writer_;

  /// `clock::time_point::max()` means none.
  clock::time_point read_by_ = clock::time_point::max();
  clock::time_point armed_for_ = clock::time_point::max();
  boost::asio::steady_timer timer_;
};

} // namespace serve
