// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "net/household.hpp"
#include "net/unique_fd.hpp"
#include "net/wire.hpp"

#include <caf/intrusive_ptr.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/io/scribe.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kvtide::net {

/// One connection in the hands of CAF's broker, which speaks CAF's protocol
/// through it. Besides carrying bytes it watches what comes: nobody makes this
/// process take gigabytes, nobody's backlog grows without end, and of a peer
/// that is connected no second connection is taken until the first has ended.
///
/// All calls on the thread of CAF's multiplexer, unless it says otherwise.
class connection final : public caf::io::scribe {
public:
  using multiplexer = caf::io::network::default_multiplexer;

  enum class side : bool {
    accepted,
    dialed,
  };

  /// Any thread.
  /// @param session null: without TLS; else its handshake is over
  connection(multiplexer& mpx, unique_fd fd, caf::openssl::session_ptr session,
             std::string peer, side from, std::shared_ptr<household> home);

  ~connection() override;

  /// A whole header has come. Any thread.
  [[nodiscard]] bool spoke() const noexcept {
    return spoke_.load(std::memory_order_acquire);
  }

  /// It has left the broker. Any thread.
  [[nodiscard]] bool closed() const noexcept {
    return closed_.load(std::memory_order_acquire);
  }

  /// Ends it; the broker hears that the peer is gone. Any thread.
  /// @param why a sentence without a point
  void drop_later(std::string why);

  /// Why it ended; empty if nobody knows more than that it did. Any thread.
  [[nodiscard]] std::string why() const;

  /// Any thread.
  [[nodiscard]] const std::string& peer() const noexcept {
    return peer_;
  }

  // -- for the broker ---------------------------------------------------------

  void configure_read(caf::io::receive_policy::config config) override;
  void ack_writes(bool enable) override;
  std::vector<char>& wr_buf() override;
  std::vector<char>& rd_buf() override;
  void flush() override;
  bool consume(caf::execution_unit* ctx, const void* data,
               std::size_t size) override;
  void graceful_shutdown() override;
  void add_to_loop() override;
  void remove_from_loop() override;
  std::string addr() const override;
  std::uint16_t port() const override;

protected:
  void detach_from(caf::io::abstract_broker* broker) override;

private:
  class stream final : public caf::io::network::stream {
  public:
    stream(multiplexer& mpx, int fd, caf::openssl::session_ptr session);

    void handle_event(caf::io::network::operation op) override;

    /// Sends what it can at once.
    void push();

    wire bytes;
  };

  /// Since something came last.
  [[nodiscard]] std::chrono::milliseconds silence() const;

  void drop(std::string why);

  void explain(std::string why);

  /// Looks at a header or a payload before the broker does.
  /// @returns false if the connection has to end
  [[nodiscard]] bool admit(caf::execution_unit* ctx,
                           const std::vector<char>& data);

  /// Who has not introduced himself is not listened to.
  [[nodiscard]] bool admit_order();

  [[nodiscard]] bool admit_node(caf::execution_unit* ctx,
                                const std::vector<char>& data);

  const std::string peer_;
  const side from_;
  const std::shared_ptr<household> home_;
  std::atomic<bool> spoke_{false};
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;
  std::string why_;
  bool launched_ = false;
  /// What waits is still sent.
  bool leaving_ = false;
  /// When something came last.
  std::chrono::steady_clock::time_point heard_{};
  /// Of the payload that comes next, if one does.
  caf::io::basp::header header_{};
  bool payload_next_ = false;
  /// It has begun with an introduction.
  bool greeted_ = false;
  /// Who is at the other end, once it has said so.
  caf::node_id node_;
  stream stream_;
};

using connection_ptr = caf::intrusive_ptr<connection>;

} // namespace kvtide::net
