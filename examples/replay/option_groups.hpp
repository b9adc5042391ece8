// SPDX-License-Identifier: Apache-2.0

/// @file
/// Options that the programs of this model have in common.

#pragma once

#include "examples/replay/options.hpp"

#include <CLI/App.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace kvtide::replay {

/// What CLI11 reads into and `settle` takes over.
struct raw_sizes {
  std::uint64_t bandwidth = 0;
  std::uint64_t kernel_below = 0;
  std::uint32_t detection_ms = 2'000;
};

/// The KV memory of a rank, and the model's name.
void add_shape(CLI::App& app, replay_options& opts);
void add_policy(CLI::App& app, replay_options& opts);
/// Rules, host pool, and how copies go.
void add_runtime(CLI::App& app, replay_options& opts, raw_sizes& raw);
void add_gpu(CLI::App& app, replay_options& opts, raw_sizes& raw);
/// Ports and certificates.
void add_network(CLI::App& app, replay_options& opts);
void add_detection(CLI::App& app, std::uint32_t& milliseconds);

/// Takes over what depends on which options were given, after parsing.
/// @returns what is wrong with them, or nothing
[[nodiscard]] std::string settle(const CLI::App& app, const raw_sizes& raw,
                                 replay_options& opts);

/// @param ranks_here How many of the ranks live in this process.
/// @returns which options cannot be had together, or nothing
[[nodiscard]] std::string find_contradiction(const replay_options& opts,
                                             std::size_t ranks_here);

} // namespace kvtide::replay
