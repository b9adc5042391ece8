// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kvtide::replay {

/// Prompt tokens that one prefix id of a Mooncake trace stands for.
inline constexpr token_count tokens_per_id = 512;

/// One request of a trace.
struct trace_row {
  /// Nanoseconds after the first row.
  nanoseconds_t arrival = 0;
  /// At least 1.
  token_count prompt_tokens = 0;
  /// At least 1: a model that ran the prompt has sampled a token.
  token_count output_tokens = 0;
  /// One id per `tokens_per_id` tokens of the prompt, the last one for what is
  /// left; empty if the trace says nothing about shared prefixes.
  std::vector<std::uint64_t> prefix_ids;
};

/// Reads and checks a whole trace: Mooncake JSON lines, or the CSV of the Azure
/// traces. Which of the two is seen from the first line. From a pipe it reads
/// until that is closed.
/// @returns `ec::invalid_argument` and "file:line: what is wrong", also if
///          `path` is neither a file nor a pipe, or a line has more than 1 MiB.
[[nodiscard]] result<std::vector<trace_row>>
read_trace(const std::string& path);

/// What a cache without limits would find on a trace: the leading prefix ids of
/// each prompt that an earlier row had, at most all tokens but one.
struct ideal_hits {
  token_count prompt_tokens = 0;
  token_count hit_tokens = 0;
};

[[nodiscard]] ideal_hits ideal_of(const std::vector<trace_row>& rows);

} // namespace kvtide::replay
