// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "actors/ready_fd.hpp"
#include "net/connection.hpp"
#include "net/endpoint.hpp"
#include "net/unique_fd.hpp"

#include <caf/fwd.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <poll.h>
#include <string>
#include <thread>
#include <vector>

namespace kvtide::net {

/// Who came of a call to `porter::dial`.
struct dialed {
  /// Null if nobody did.
  connection_ptr peer;
  /// Then: why, a sentence without a point.
  std::string why;
};

/// Deals with everybody who has not proven yet who he is, on a thread of its
/// own: accepts, dials, and sees each TLS handshake through under a deadline.
/// What comes from strangers never costs time of CAF's multiplexer, which
/// carries the messages of the ranks that serve; CAF's own doorman would shake
/// hands there, without a deadline, and end the process when it cannot read a
/// certificate.
class porter {
public:
  struct settings {
    caf::actor_system* system = nullptr;
    bool tls = false;
    /// For each handshake, and until the first word after it.
    std::chrono::milliseconds patience{2'000};
    std::shared_ptr<household> home;
  };

  using clock = std::chrono::steady_clock;
  using admit_fun = std::function<void(connection_ptr)>;
  using find_fun = std::function<result<std::vector<endpoint>>()>;
  using dialed_fun = std::function<void(dialed)>;

  explicit porter(settings config);

  porter(const porter&) = delete;
  porter& operator=(const porter&) = delete;

  ~porter();

  /// @returns `ec::out_of_memory` if the system refuses a thread or descriptor
  [[nodiscard]] error start();

  /// Accepts from `listener`; `admit` runs on the porter's thread.
  void open_gate(unique_fd listener, admit_fun admit);

  /// Accepts no more, and turns away who has not been admitted.
  void shut_gate();

  /// Dials the first of what `find` returns that answers. Both run once, on the
  /// porter's thread, unless the porter stops before.
  void dial(find_fun find, dialed_fun answer);

  /// Ends the thread: no function runs any more. From the owner's thread.
  void stop();

private:
  enum class stage : std::uint8_t {
    connecting,
    shaking,
    /// Dialed: until the first word of the other side.
    listening,
  };

  struct visitor {
    unique_fd fd;
    caf::openssl::session_ptr session;
    std::string peer;
    stage at = stage::shaking;
    bool wants_write = false;
    clock::time_point deadline;
    /// Only if it was dialed.
    dialed_fun answer;
    std::vector<endpoint> others;
  };

  /// In the hands of the broker, but it has not said a word yet.
  struct guest {
    connection_ptr peer;
    clock::time_point deadline;
  };

  enum class progress : std::uint8_t {
    more,
    done,
    failed,
  };

  struct order {
    find_fun find;
    dialed_fun answer;
  };

  void run();
  void take_orders();
  void begin(const order& x);
  void wait_for_events();
  void look_at_visitors();
  void look_at_guests();

  void accept_all();
  void make_room();
  void receive(unique_fd fd);
  /// @returns false if it is done with `x`
  [[nodiscard]] bool serve(visitor& x, bool ready);
  [[nodiscard]] progress advance(visitor& x, std::string& why);
  [[nodiscard]] progress shake(visitor& x, std::string& why);
  [[nodiscard]] bool try_next(visitor& x, std::string why);
  void turn_away(visitor& x, std::string why);
  void hand_over(visitor& x);
  [[nodiscard]] connection_ptr connect(visitor& x, connection::side from);
  [[nodiscard]] std::size_t unproven() const;
  [[nodiscard]] std::string patience_text() const;

  const settings config_;
  std::unique_ptr<ready_fd> wake_;
  std::thread thread_;

  // -- between threads --------------------------------------------------------

  std::mutex mutex_;
  bool stopping_ = false;
  bool gate_changed_ = false;
  unique_fd new_listener_;
  admit_fun new_admit_;
  std::vector<order> orders_;

  // -- for the thread alone ---------------------------------------------------

  unique_fd listener_;
  admit_fun admit_;
  /// Until then nothing is accepted: the process has no descriptor left.
  clock::time_point paused_until_{};
  std::deque<visitor> visitors_;
  std::deque<guest> guests_;
  std::vector<pollfd> polled_;
};

} // namespace kvtide::net
