// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "net/porter.hpp"

#include <caf/intrusive_ptr.hpp>
#include <caf/io/doorman.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace kvtide::net {

/// A port in the hands of CAF's broker: who is let in by the porter becomes a
/// connection of the broker. On the thread of CAF's multiplexer.
class entrance final : public caf::io::doorman {
public:
  /// Any thread.
  entrance(std::shared_ptr<porter> guard, unique_fd listener,
           std::shared_ptr<household> home, connection::multiplexer& mpx);

  // -- for the broker ---------------------------------------------------------

  void launch() override;
  bool new_connection() override;
  void graceful_shutdown() override;
  void add_to_loop() override;
  void remove_from_loop() override;
  std::string addr() const override;
  std::uint16_t port() const override;

private:
  void admit(connection_ptr peer);

  std::shared_ptr<porter> guard_;
  unique_fd listener_;
  connection::multiplexer& mpx_;
  const endpoint self_;
};

} // namespace kvtide::net
