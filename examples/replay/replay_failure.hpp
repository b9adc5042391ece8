// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <stdexcept>

namespace kvtide::replay {

/// The replay cannot go on. The text is for the user.
class replay_failure : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The runtime, or the device, refused to start with these options.
class bad_configuration : public replay_failure {
public:
  using replay_failure::replay_failure;
};

/// The replay was told to end before it had begun.
class given_up : public replay_failure {
public:
  using replay_failure::replay_failure;
};

} // namespace kvtide::replay
