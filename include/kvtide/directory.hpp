// SPDX-License-Identifier: Apache-2.0

/// @file
/// Several replicas of a model, each with a runtime of its own: a directory
/// hears which chunks each of them has, so that a router can send a prompt to
/// the one that has most of it. All of it works inside one process; between
/// processes it needs kvtide/network.hpp and a network for each end.

#pragma once

#include "kvtide/error.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"
#include "kvtide/network.hpp"
#include "kvtide/options.hpp"
#include "kvtide/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvtide {

class directory;

/// Where a directory is: exactly one of the two.
struct directory_place {
  /// In this process. It may end first.
  const directory* here = nullptr;
  /// "host:port", for which `network` is required: one that nobody else uses.
  std::string address;
  std::shared_ptr<kvtide::network> network;
};

struct directory_options {
  /// Who publishes and asks dials `network_options::listen`. Null: only this
  /// process does. One that nobody else uses.
  std::shared_ptr<kvtide::network> network;

  /// Different chunks that are remembered, of all replicas together, at least
  /// 1: 32 to 64 bytes each. What does not fit is not known, until there is
  /// room for a quarter again: prompts then find less than they could.
  std::size_t max_keys = std::size_t{4} << 20;
};

/// What each replica said it has. Holds digests of keys and no content; loses
/// everything when its process ends, and hears it again from replicas that
/// live.
///
/// Thread-safety: any thread may call anything; nothing guards the destructor
/// and moves.
class directory {
public:
  /// @returns `ec::invalid_options`, or `ec::out_of_memory` if the system
  ///          refuses threads
  [[nodiscard]] static result<directory> start(const directory_options& opts);

  directory(directory&&) noexcept;
  directory& operator=(directory&&) noexcept;
  ~directory();

  /// Where it can be reached; empty without a network.
  [[nodiscard]] std::string address() const;

private:
  friend struct directory_access;
  struct impl;
  explicit directory(std::shared_ptr<impl> ptr) noexcept;
  std::shared_ptr<impl> impl_;
};

struct publisher_options {
  directory_place place;

  /// What a router will hear, 1 to 255 bytes: whatever it needs to find the
  /// replica. Of two that say the same name the later one counts.
  std::string replica;
};

/// A replica's mouth: `options::publisher` of one runtime at a time.
class publisher;

/// Starts to look for the directory; does not wait for it. Whatever becomes of
/// the directory, the runtime goes on as ever.
/// @returns as `directory::start`
[[nodiscard]] result<std::shared_ptr<publisher>>
make_publisher(const publisher_options& opts);

/// What one replica has of a prompt.
struct replica_holding {
  std::string replica;
  /// Leading tokens of which it has every chunk of every full attention group.
  token_count tokens = 0;
  /// The same in chunks of the first such group.
  std::uint64_t chunks = 0;
  /// All that it has was known. Otherwise it may have more.
  bool whole = false;
};

/// Answers `router::best_replica`.
struct replica_choice {
  ticket_id ticket = 0;
  /// `ec::none`; `ec::timeout` if the directory cannot be reached or is too
  /// slow; `ec::unsupported` if it refuses to answer.
  error reason;
  /// Where the prompt should go: to who has most of it; of several to the one
  /// that was named longest ago. Where nobody has `router_options::least_share`
  /// of it: to who was given least. Empty if there is no replica.
  std::string replica;
  /// What that one has.
  token_count tokens = 0;
  std::uint64_t chunks = 0;
  /// Of everyone, for a router that knows who is busy.
  std::vector<replica_holding> all;
};

struct router_options {
  directory_place place;

  /// Those of the replicas: `groups`, `blocks_per_chunk`, `tokens_per_hash` and
  /// `model_fingerprint` say which keys a prompt has. All else is not looked
  /// at. There must be a full attention group that is no draft.
  options shared;

  /// Longest wait for an answer, 1 ms to 1 min.
  std::chrono::milliseconds timeout{50};

  /// Who has less than this part of a prompt is not followed: the prompt goes
  /// to the replica that got least to compute from this router so far. A
  /// beginning that all prompts share then draws them to no place. 0 to 1; 0:
  /// always to who has most.
  double least_share = 0.125;
};

/// Asks a directory where a prompt should go. An answer is advice: it may be
/// late by what is under way, and the replica's own lookup decides what it
/// loads. Sliding and draft groups are not looked at, so that a lookup can find
/// less than was promised.
///
/// Thread-safety: any thread may call anything; nothing guards the destructor
/// and moves. Only `ask` and `wait` block.
class router {
public:
  /// Does not wait for the directory.
  /// @returns as `directory::start`; `ec::unsupported` without a full attention
  ///          group
  [[nodiscard]] static result<router> start(const router_options& opts);

  router(router&&) noexcept;
  router& operator=(router&&) noexcept;
  ~router();

  /// Answered by a `replica_choice`, always, and in time.
  /// @param hashes as `extend_keys::hashes`, from the prompt's start
  ticket_id best_replica(const std::vector<prefix_hash>& hashes);

  /// All answers that came. Never blocks.
  [[nodiscard]] std::vector<replica_choice> poll();

  /// Readable while `poll` has something to return. Owned by the router.
  [[nodiscard]] int event_fd() const noexcept;

  /// Blocks until `poll` has something to return.
  /// @returns false if `timeout` passed first
  [[nodiscard]] bool wait(std::chrono::milliseconds timeout) const;

  /// Asks, and blocks for the answer: little longer than
  /// `router_options::timeout`. `poll` does not return it.
  [[nodiscard]] replica_choice ask(const std::vector<prefix_hash>& hashes);

private:
  struct impl;
  explicit router(std::unique_ptr<impl> ptr) noexcept;
  std::unique_ptr<impl> impl_;
};

} // namespace kvtide
