// SPDX-License-Identifier: Apache-2.0

/// @file
/// The two messages of a plan as bytes: the same ones through CAF's network
/// layer and inside a message of the engine's own.

#pragma once

#include "messages/byte_stream.hpp"
#include "messages/fwd.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvtide::msg {

/// The same message gives the same bytes on each call.
void write(byte_writer& out, const begin_step& x);
void write(byte_writer& out, const stores& x);

/// Whatever the bytes are, what comes of them takes at most a few dozen times
/// their memory. The reader fails if they are none of `write`'s, or if a list
/// has a job of the wrong kind.
void read(byte_reader& in, begin_step& x);
void read(byte_reader& in, stores& x);

[[nodiscard]] std::string to_bytes(const begin_step& x);
[[nodiscard]] std::string to_bytes(const stores& x);

/// @returns false if `bytes` are no such message; `x` has no meaning then.
[[nodiscard]] bool from_bytes(std::string_view bytes, begin_step& x);
[[nodiscard]] bool from_bytes(std::string_view bytes, stores& x);

/// A worker takes the stores of a step in any number of messages. Those of most
/// steps go into one of this length.
inline constexpr std::size_t most_bytes_of_stores = std::size_t{32} * 1024;

/// The same jobs in the same order, as messages of at most
/// `most_bytes_of_stores`, or of one job if it alone is longer (CNT-02). None
/// if there are no jobs.
[[nodiscard]] std::vector<stores> in_parts(stores x);

} // namespace kvtide::msg
