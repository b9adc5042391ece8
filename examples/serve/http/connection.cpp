// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/connection.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/write.hpp>
#include <cassert>
#include <iterator>
#include <sstream>
#include <utility>

namespace serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr auto linger_time = std::chrono::seconds{2};
constexpr auto linger_bytes = std::size_t{1} << 20;
constexpr auto event_stream = "text/event-stream";

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

// Whether it is known where the body ends and what it says. The parser leaves
// all codings but the last one to us, and takes a body without "chunked" at the
// end for none: what follows would be read as the next request.
bool knows_coding(const http::request_header<>& head) {
  const auto given = head.equal_range(http::field::transfer_encoding);
  return given.first == given.second
      || (std::next(given.first) == given.second
          && beast::iequals(given.first->value(), "chunked"));
}

std::string to_text(const http::response_header<>& head) {
  auto out = std::ostringstream{};
  out << head;
  return std::move(out).str();
}

// What the engine says when it does not take a request.
http_answer refusal(const kvtide::error& reason) {
  switch (reason.code) {
    case kvtide::ec::invalid_argument:
      return make_error(422, "invalid_request", reason.text);
    case kvtide::ec::out_of_memory: {
      auto out = make_error(429, "queue_full", reason.text);
      out.retry_after = 1;
      return out;
    }
    case kvtide::ec::shutting_down:
      return make_error(503, "shutting_down", reason.text);
    default:
      return make_error(500, "engine_failed", reason.text);
  }
}

constexpr auto cut_off_text
  = "The server is stopping and cut this completion off; send the request "
    "again when it is back.";

} // namespace

connection::connection(server_state& state, asio::ip::tcp::socket socket)
  : state_(state), socket_(std::move(socket)),
    writer_(socket_, state.opts.write_timeout), timer_(state.io) {
  // nop
}

connection::~connection() {
  assert(phase_ == phase::closed);
}

void connection::start() {
  state_.connections.insert(this);
  state_.metrics.connection_opened();
  expect_request(state_.opts.request_timeout);
  read_more();
}

void connection::drain() {
  // A request that is on its way is not served any more: the client sees the
  // end of the connection, as if it had been a moment later.
  if (phase_ == phase::reading)
    linger();
  else
    close_after_ = true;
}

void connection::cut_off() {
  if (running_)
    state_.engine.abort(running_->id);
}

void connection::close() {
  if (phase_ == phase::closed)
    return;
  abort_completion();
  phase_ = phase::closed;
  auto ignored = boost::system::error_code{};
  socket_.close(ignored);
  timer_.cancel();
  if (state_.connections.erase(this) > 0) {
    state_.metrics.connection_closed();
    state_.on_less();
  }
}

// -- reading ------------------------------------------------------------------

void connection::read_more() {
  if (reading_ || phase_ == phase::closed)
    return;
  // Who sends ahead of the answers waits here; while a completion runs
  // `on_read` hangs up instead, as nobody would see the client leave.
  if (phase_ == phase::answering
      && pending_.size() > state_.opts.max_pipelined_bytes)
    return;
  reading_ = true;
  socket_.async_read_some(
    asio::buffer(incoming_),
    [self = shared_from_this()](const boost::system::error_code& failure,
                                std::size_t bytes) {
      self->on_read(failure, bytes);
    });
}

void connection::on_read(const boost::system::error_code& failure,
                         std::size_t bytes) {
  reading_ = false;
  if (phase_ == phase::closed)
    return;
  if (failure) {
    on_client_gone();
    return;
  }
  if (phase_ == phase::lingering) {
    dropped_bytes_ += bytes;
    if (dropped_bytes_ > linger_bytes) {
      close();
      return;
    }
    read_more();
    return;
  }
  pending_.append(incoming_.data(), bytes);
  if (phase_ == phase::reading) {
    parse();
  } else if (phase_ == phase::waiting
             && pending_.size() > state_.opts.max_pipelined_bytes) {
    state_.metrics.client_dropped(client_fault::too_much_ahead);
    close();
    return;
  }
  read_more();
}

void connection::on_client_gone() {
  switch (phase_) {
    case phase::reading:
      if (parser_ || !pending_.empty())
        state_.metrics.disconnected(disconnect_phase::half_request);
      break;
    case phase::waiting:
      if (running_)
        state_.metrics.disconnected(running_->tokens == 0
                                      ? disconnect_phase::before_first_token
                                      : disconnect_phase::in_the_middle);
      break;
    case phase::answering:
      // Nothing is left to abort, and a client that closed one direction may
      // still read. If it is gone, writing fails.
      close_after_ = true;
      return;
    case phase::lingering:
    case phase::closed:
      break;
  }
  close();
}

void connection::expect_request(std::chrono::milliseconds timeout) {
  phase_ = phase::reading;
  read_by_ = clock::now() + timeout;
  arm();
}

void connection::parse() {
  while (phase_ == phase::reading && !pending_.empty() && parse_some()) {
    // nop
  }
}

// Returns false if more bytes are needed.
bool connection::parse_some() {
  if (!parser_) {
    // Some clients send an empty line behind a body.
    if (pending_.front() == '\r' || pending_.front() == '\n') {
      pending_.erase(0, 1);
      return true;
    }
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(
      static_cast<std::uint32_t>(state_.opts.max_header_bytes));
    parser_->body_limit(state_.opts.max_body_bytes);
    expect_request(state_.opts.request_timeout);
  }
  auto failure = boost::system::error_code{};
  const auto used = parser_->put(asio::buffer(pending_), failure);
  pending_.erase(0, used);
  if (failure && failure != http::error::need_more) {
    refuse_request(failure);
    return false;
  }
  if (parser_->is_header_done() && !knows_coding(parser_->get())) {
    refuse_coding();
    return false;
  }
  if (parser_->is_done()) {
    const auto request = parser_->release();
    parser_.reset();
    continued_ = false;
    read_by_ = clock::time_point::max();
    serve(request);
    return true;
  }
  if (parser_->is_header_done() && !continued_) {
    continued_ = true;
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue"))
      send("HTTP/1.1 100 Continue\r\n\r\n");
  }
  return used > 0;
}

void connection::refuse_request(const boost::system::error_code& failure) {
  // Nobody knows where the next request begins.
  close_after_ = true;
  head_only_ = false;
  old_http_ = false;
  if (failure == http::error::header_limit)
    answer(make_error(431, "header_too_large",
                      "The request's header is longer than "
                        + std::to_string(state_.opts.max_header_bytes)
                        + " bytes; send fewer or shorter fields."));
  else if (failure == http::error::body_limit)
    answer(make_error(413, "body_too_large",
                      "The body is longer than "
                        + std::to_string(state_.opts.max_body_bytes)
                        + " bytes; send a shorter prompt."));
  else
    answer(make_error(400, "malformed_http",
                      "This is not a request of HTTP/1.1 (" + failure.message()
                        + "); see RFC 9112."));
}

void connection::refuse_coding() {
  close_after_ = true;
  head_only_ = false;
  old_http_ = false;
  answer(make_error(501, "unknown_coding",
                    "The only Transfer-Encoding that is understood is "
                    "'chunked'; send the body as it is."));
}

// -- serving ------------------------------------------------------------------

void connection::serve(const request_parser::value_type& request) {
  old_http_ = request.version() < 11;
  head_only_ = request.method() == http::verb::head;
  close_after_ = !request.keep_alive();
  if (!old_http_ && request.count(http::field::host) != 1) {
    answer(make_error(400, "malformed_http",
                      "A request of HTTP/1.1 has exactly one Host field; add "
                      "'Host: localhost'."));
    return;
  }
  const auto head
    = request_head{view(request.method_string()), view(request.target()),
                   view(request[http::field::content_type])};
  auto call = route(head, request.body(), state_.opts.completions);
  if (auto* wanted = std::get_if<completion_call>(&call)) {
    start_completion(std::move(*wanted));
  } else if (std::holds_alternative<metrics_call>(call)) {
    ask_stats();
  } else if (std::holds_alternative<health_call>(call)) {
    auto out = http_answer{};
    out.body = "{\"status\":\"ok\"}\n";
    answer(out);
  } else {
    answer(std::get<http_answer>(call));
  }
}

void connection::start_completion(completion_call call) {
  const auto number = ++state_.last_number;
  auto& run = running_.emplace();
  run.head = {number, seconds_since_1970(), call.request.prompt.size()};
  run.stream = call.stream;
  run.since = clock::now();
  phase_ = phase::waiting;
  ++state_.open_completions;
  state_.metrics.completion_started();
  // The engine's threads touch neither sockets nor this object: they leave what
  // they have to say to the thread that may.
  auto& state = state_;
  const auto weak = weak_from_this();
  auto callbacks = completion_callbacks{};
  callbacks.on_text = [&state, weak, number](std::string_view text) {
    asio::post(state.io, [weak, number, piece = std::string{text}] {
      if (const auto self = weak.lock())
        self->on_text(number, piece);
    });
  };
  callbacks.on_end = [&state, weak, number](completion_end why) {
    asio::post(state.io, [&state, weak, number, why] {
      --state.open_completions;
      state.metrics.completion_ended();
      if (state.draining)
        ++(why == completion_end::length ? state.finished : state.cut_off);
      if (const auto self = weak.lock())
        self->on_end(number, why);
      state.on_less();
    });
  };
  auto taken
    = state_.engine.submit(std::move(call.request), std::move(callbacks));
  if (taken) {
    run.id = taken.value();
    return;
  }
  --state_.open_completions;
  state_.metrics.completion_ended();
  running_.reset();
  answer(refusal(taken.failure()));
}

void connection::abort_completion() {
  if (running_)
    state_.engine.abort(running_->id);
  running_.reset();
}

void connection::on_text(std::uint64_t number, std::string_view text) {
  if (!running_ || running_->head.number != number || text.empty())
    return;
  if (running_->tokens == 0) {
    state_.metrics.first_token(clock::now() - running_->since);
    if (running_->stream)
      start_stream();
  }
  running_->tokens += text.size();
  if (!running_->stream) {
    running_->text += text;
    return;
  }
  send_in_stream(piece_event(running_->head, text));
  // The buffer is this client's own: the engine never waits for it.
  if (writer_.untaken() > state_.opts.max_unsent_bytes)
    drop_slow_reader();
}

void connection::on_end(std::uint64_t number, completion_end why) {
  if (!running_ || running_->head.number != number)
    return;
  const auto run = *std::exchange(running_, std::nullopt);
  const auto complete = why == completion_end::length;
  if (complete)
    state_.metrics.completed(clock::now() - run.since);
  if (run.stream && run.tokens > 0) {
    send_in_stream(complete ? end_events(run.head, run.tokens)
                            : error_event("shutting_down", cut_off_text));
    if (!old_http_)
      send(last_chunk);
    finish_answer();
  } else if (complete) {
    auto out = http_answer{};
    out.body = completion_json(run.head, run.text);
    answer(out);
  } else {
    answer(make_error(503, "shutting_down", cut_off_text));
  }
}

void connection::ask_stats() {
  counters_for_ = ++state_.last_number;
  phase_ = phase::waiting;
  auto& state = state_;
  const auto weak = weak_from_this();
  const auto number = counters_for_;
  state_.engine.ask_stats([&state, weak, number](const engine_stats& stats) {
    asio::post(state.io, [weak, number, stats] {
      if (const auto self = weak.lock())
        self->on_stats(number, stats);
    });
  });
}

void connection::on_stats(std::uint64_t number, const engine_stats& stats) {
  if (phase_ != phase::waiting || counters_for_ != number)
    return;
  auto out = http_answer{};
  out.content_type = "text/plain; version=0.0.4; charset=utf-8";
  out.body = state_.metrics.text(stats);
  answer(out);
}

void connection::start_stream() {
  auto head = http::response_header<>{};
  head.version(11);
  head.result(http::status::ok);
  head.set(http::field::content_type, event_stream);
  head.set(http::field::cache_control, "no-store");
  if (old_http_)
    close_after_ = true;
  else
    head.set(http::field::transfer_encoding, "chunked");
  if (close_after_)
    head.set(http::field::connection, "close");
  state_.metrics.answered(200);
  send(to_text(head));
}

void connection::send_in_stream(std::string_view events) {
  if (old_http_)
    send(events);
  else
    send(to_chunk(events));
}

void connection::answer(const http_answer& what) {
  auto head = http::response_header<>{};
  head.version(11);
  head.result(what.status);
  head.set(http::field::content_type, what.content_type);
  head.set(http::field::content_length, std::to_string(what.body.size()));
  if (!what.allow.empty())
    head.set(http::field::allow, what.allow);
  if (what.retry_after > 0)
    head.set(http::field::retry_after, std::to_string(what.retry_after));
  // HTTP/1.0 keeps a connection only if both sides say so.
  if (close_after_ || old_http_)
    head.set(http::field::connection, close_after_ ? "close" : "keep-alive");
  state_.metrics.answered(what.status);
  send(to_text(head));
  if (!head_only_)
    send(what.body);
  finish_answer();
}

void connection::finish_answer() {
  if (phase_ == phase::closed)
    return;
  phase_ = phase::answering;
  read_by_ = clock::time_point::max();
}

void connection::linger() {
  phase_ = phase::lingering;
  pending_.clear();
  auto failure = boost::system::error_code{};
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, failure);
  if (failure) {
    close();
    return;
  }
  read_by_ = clock::now() + linger_time;
  arm();
  read_more();
}

// -- writing ------------------------------------------------------------------

void connection::send(std::string_view bytes) {
  writer_.add(bytes);
  write_more();
}

void connection::write_more() {
  if (phase_ == phase::closed)
    return;
  writer_.start(
    [self = shared_from_this()](const boost::system::error_code& failure) {
      self->on_written(failure);
    });
  writer_.look();
  arm();
}

void connection::on_written(const boost::system::error_code& failure) {
  writer_.ended();
  if (phase_ == phase::closed)
    return;
  if (failure) {
    if (phase_ == phase::answering)
      state_.metrics.disconnected(disconnect_phase::while_answering);
    else if (phase_ == phase::waiting)
      state_.metrics.disconnected(disconnect_phase::in_the_middle);
    close();
    return;
  }
  write_more();
  if (writer_.busy() || phase_ != phase::answering)
    return;
  if (close_after_) {
    linger();
    return;
  }
  expect_request(state_.opts.idle_timeout);
  parse();
  read_more();
}

// -- deadlines ----------------------------------------------------------------

void connection::arm() {
  const auto next = std::min(read_by_, writer_.deadline());
  // One that rings too early looks again: cheaper than setting it at each
  // write.
  if (next >= armed_for_ || phase_ == phase::closed)
    return;
  armed_for_ = next;
  timer_.expires_at(next);
  timer_.async_wait(
    [weak = weak_from_this()](const boost::system::error_code& failure) {
      if (const auto self = weak.lock(); self && !failure)
        self->on_deadline();
    });
}

void connection::on_deadline() {
  armed_for_ = clock::time_point::max();
  if (phase_ == phase::closed)
    return;
  writer_.look();
  const auto now = clock::now();
  if (now >= writer_.deadline()) {
    drop_slow_reader();
  } else if (now >= read_by_) {
    if (phase_ != phase::reading || !parser_) {
      close();
      return;
    }
    state_.metrics.client_dropped(client_fault::slow_request);
    parser_.reset();
    head_only_ = false;
    old_http_ = false;
    close_after_ = true;
    answer(make_error(408, "request_timeout",
                      "The request was not complete after "
                        + std::to_string(state_.opts.request_timeout.count())
                        + " ms; send it faster."));
  }
  arm();
}

void connection::drop_slow_reader() {
  state_.metrics.client_dropped(client_fault::slow_reader);
  close();
}

} // namespace serve
