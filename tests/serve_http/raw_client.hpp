// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace serve {

/// An answer, taken apart.
struct raw_answer {
  /// Zero if none came.
  int status = 0;
  /// Names in lower case.
  std::map<std::string, std::string> fields;
  /// Without its chunks' frames.
  std::string body;
};

/// A client with one blocking socket on loopback. All waits end after ten
/// seconds, and what is missing then fails the test.
class raw_client {
public:
  /// @param receive_bytes Size of the socket's receive buffer; zero leaves it
  ///                      to the system.
  explicit raw_client(std::uint16_t port, int receive_bytes = 0);
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;
  ~raw_client();

  /// False if the server has gone.
  bool send(std::string_view bytes);

  /// A whole answer. With `head` nothing follows its header.
  raw_answer receive(bool head = false);

  /// Reads until `text` has come, which stays to be read again; false if the
  /// connection ended before.
  bool await(std::string_view text);

  /// As `await`, but everything up to the end of `text` is gone then.
  bool skip(std::string_view text);

  /// True if the server closes or resets before it sends anything more.
  bool closed();

  /// Says that nothing more is sent, and goes on reading.
  void close_sending();
  /// Goes away in order.
  void close();
  /// Goes away at once: the server gets a reset.
  void reset();

private:
  bool more();
  bool take_line(std::string& line);
  bool take(std::size_t bytes, std::string& to);

  int socket_ = -1;
  std::string read_;
};

/// A request for a completion with this body.
[[nodiscard]] std::string post(std::string_view body,
                               std::string_view fields = "");

/// A request without a body.
[[nodiscard]] std::string get(std::string_view target,
                              std::string_view fields = "");

} // namespace serve
