// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "messages/fwd.hpp"

namespace kvtide::msg {

/// An actor's own clock says that something may be due. Sent only to itself.
struct timer {};

} // namespace kvtide::msg

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::msg::timer)
