// SPDX-License-Identifier: Apache-2.0

/// @file
/// Messages and answers as lines that a person reads.

#pragma once

#include "kvtide/answers.hpp"

#include "messages/gpu_worker.hpp"
#include "tests/explore/text_book.hpp"

#include <caf/mailbox_element.hpp>

#include <string>

namespace kvtide::explore {

/// "S3{R1#0 slot 2 <- [5]}"
[[nodiscard]] std::string describe(const job& work, const text_book& texts);

[[nodiscard]] std::string describe(const msg::begin_step& what,
                                   const text_book& texts);

[[nodiscard]] std::string describe(const msg::stores& what,
                                   const text_book& texts);

[[nodiscard]] std::string describe(const engine_event& what,
                                   const text_book& texts);

/// Name of the message, and what of it matters for its place in the order.
[[nodiscard]] std::string describe(const caf::mailbox_element& what,
                                   const text_book& texts);

} // namespace kvtide::explore
