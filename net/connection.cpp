// SPDX-License-Identifier: Apache-2.0

#include "net/connection.hpp"

#include "actors/log.hpp"
#include "net/endpoint.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/io/abstract_broker.hpp>

#include <sys/socket.h>
#include <utility>

namespace kvtide::net {

using caf::io::basp::message_type;
using caf::io::network::operation;

// -- the stream ---------------------------------------------------------------

connection::stream::stream(multiplexer& mpx, int fd,
                           caf::openssl::session_ptr session)
  : caf::io::network::stream(mpx, fd), bytes(std::move(session)) {
  // nop
}

void connection::stream::handle_event(operation op) {
  handle_event_impl(op, bytes);
}

void connection::stream::push() {
  while (state_.writing) {
    handle_event(operation::write);
    if (bytes.written() == 0)
      return;
  }
}

// -- the connection -----------------------------------------------------------

connection::connection(multiplexer& mpx, unique_fd fd,
                       caf::openssl::session_ptr session, std::string peer,
                       side from, std::shared_ptr<household> home)
  : scribe(caf::io::connection_handle::from_int(home->next_handle++)),
    peer_(std::move(peer)), from_(from), home_(std::move(home)),
    stream_(mpx, fd.release(), std::move(session)) {
  home_->connections += 1;
}

connection::~connection() {
  home_->connections -= 1;
}

void connection::drop_later(std::string why) {
  stream_.backend().post(
    [self = connection_ptr{this}, why = std::move(why)]() mutable {
      self->drop(std::move(why));
    });
}

std::string connection::why() const {
  const auto guard = std::lock_guard{mutex_};
  return why_;
}

void connection::configure_read(caf::io::receive_policy::config config) {
  stream_.configure_read(config);
  if (std::exchange(launched_, true))
    return;
  stream_.start(this);
}

void connection::ack_writes(bool enable) {
  stream_.ack_writes(enable);
}

std::vector<char>& connection::wr_buf() {
  return stream_.wr_buf();
}

std::vector<char>& connection::rd_buf() {
  return stream_.rd_buf();
}

void connection::flush() {
  if (wr_buf().size() > home_->backlog)
    drop_later("it does not read what it is sent");
  stream_.flush(this);
}

bool connection::consume(caf::execution_unit* ctx, const void* data,
                         std::size_t size) {
  const auto guard = connection_ptr{this};
  if (detached())
    return false;
  spoke_.store(true, std::memory_order_release);
  heard_ = std::chrono::steady_clock::now();
  if (admit(ctx, rd_buf()))
    return scribe::consume(ctx, data, size);
  drop({});
  return false;
}

void connection::graceful_shutdown() {
  const auto guard = connection_ptr{this};
  explain(stream_.bytes.why());
  // CAF does not say why it closes a connection.
  const auto silent = silence();
  if (spoke() && silent >= home_->detection)
    explain("it was silent for " + std::to_string(silent.count()) + " ms");
  leaving_ = true;
  detach(&stream_.backend(), false);
  // What the kernel takes now still arrives. The rest is lost: nobody waits for
  // a peer that does not read, and no descriptor outlives its connection.
  stream_.push();
  stream_.graceful_shutdown();
  ::shutdown(stream_.fd(), SHUT_RDWR);
}

void connection::add_to_loop() {
  stream_.activate(this);
}

void connection::remove_from_loop() {
  stream_.passivate();
}

std::string connection::addr() const {
  return peer_;
}

std::uint16_t connection::port() const {
  return port_of(peer_of(stream_.fd()));
}

void connection::detach_from(caf::io::abstract_broker* broker) {
  explain(stream_.bytes.why());
  closed_.store(true, std::memory_order_release);
  if (from_ == side::accepted) {
    const auto reason = why();
    if (!node_)
      home_->refusals.note(
        peer_, reason.empty() ? "it did not speak the protocol" : reason);
    else
      log().info("network: {} is gone{}{}", peer_, reason.empty() ? "" : ": ",
                 reason);
    if (const auto i = home_->nodes.find(node_);
        i != home_->nodes.end() && i->second == this)
      home_->nodes.erase(i);
  }
  scribe::detach_from(broker);
  // The peer hears at once, whoever else holds this object.
  if (!leaving_)
    ::shutdown(stream_.fd(), SHUT_RDWR);
}

std::chrono::milliseconds connection::silence() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
    std::chrono::steady_clock::now() - heard_);
}

void connection::drop(std::string why) {
  explain(std::move(why));
  if (!detached())
    io_failure(&stream_.backend(), operation::read);
}

void connection::explain(std::string why) {
  const auto guard = std::lock_guard{mutex_};
  if (why_.empty())
    why_ = std::move(why);
}

bool connection::admit(caf::execution_unit* ctx,
                       const std::vector<char>& data) {
  if (payload_next_) {
    payload_next_ = false;
    return header_.operation != message_type::client_handshake
        || admit_node(ctx, data);
  }
  auto source = caf::binary_deserializer{ctx, data};
  if (source(header_) || !valid(header_)) {
    explain("it did not speak the protocol");
    return false;
  }
  if (header_.payload_len > longest_frame) {
    explain("it announced a message of " + std::to_string(header_.payload_len)
            + " bytes");
    return false;
  }
  payload_next_ = header_.payload_len > 0;
  return admit_order();
}

bool connection::admit_order() {
  const auto greeting = from_ == side::accepted
                        ? message_type::client_handshake
                        : message_type::server_handshake;
  const auto greets = header_.operation == message_type::client_handshake
                   || header_.operation == message_type::server_handshake;
  // CAF listens to those who have not introduced themselves, and follows a null
  // pointer if an introduction is empty.
  if (greets ? header_.operation == greeting && payload_next_ : greeted_) {
    greeted_ = true;
    return true;
  }
  explain(greets ? "it introduced itself in the wrong way"
                 : "it did not introduce itself");
  return false;
}

bool connection::admit_node(caf::execution_unit* ctx,
                            const std::vector<char>& data) {
  auto who = caf::node_id{};
  auto source = caf::binary_deserializer{ctx, data};
  if (source(who) || !who || who == stream_.backend().system().node()) {
    explain("it did not say who it is");
    return false;
  }
  // CAF would take a second connection for another way to the same peer, and
  // nobody here would hear that the first one broke. One that was silent for
  // several heartbeats is given up for a peer that wants to come back.
  if (const auto i = home_->nodes.find(who);
      i != home_->nodes.end() && i->second != this) {
    explain("its last connection has to end first");
    const auto last = connection_ptr{i->second};
    if (last->silence() > home_->detection / 2)
      last->drop("it came back before its loss was noticed");
    return false;
  }
  if (!node_)
    log().info("network: {} is connected", peer_);
  node_ = who;
  home_->nodes[who] = this;
  return true;
}

} // namespace kvtide::net
