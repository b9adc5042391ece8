// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvtide::core {

/// Chunks of one full attention group that a prompt could find, in order.
struct chunk_run {
  /// Tokens per chunk.
  token_count chunk_tokens = 0;
  /// See core/key_hash.hpp.
  std::vector<std::uint64_t> digests;
};

/// Which replica of a model has which chunks, as far as they said so. A
/// picture: it may be late, it never decides what is loaded, so digests stand
/// for keys. Deterministic; not thread-safe.
///
/// One table for all replicas, a bit for each: a question reads each chunk
/// once, however many replicas there are.
class replica_directory {
public:
  static constexpr std::size_t max_replicas = 64;

  /// A replica that takes part.
  using seat_id = std::uint32_t;

  struct config {
    /// Different chunks that are remembered, of all replicas together. What
    /// does not fit is left out: a replica then has more than is known of it.
    std::size_t max_keys = std::size_t{4} << 20;
  };

  /// Whether a replica may take part.
  enum class welcome : std::uint8_t {
    /// It has a seat, and nothing is known of it until it starts over.
    seated,
    /// A later life of it has the seat.
    older,
    /// All seats are taken.
    full,
  };

  /// What became of a batch.
  enum class verdict : std::uint8_t {
    applied,
    /// It was there before: no effect.
    repeated,
    /// It is of an earlier life: no effect.
    older,
    /// One before it is missing, or the replica has not started over yet: no
    /// effect, and none of those that follow has one until it does.
    gap,
  };

  struct batch {
    /// Counts up by one within a life of a replica.
    std::uint64_t sequence = 0;
    /// Forget first what was known of the replica. Mends a gap.
    bool starts_over = false;
    /// More will follow before everything the replica has is named.
    bool more = false;
    /// No digest is in both lists.
    std::span<const std::uint64_t> removed;
    std::span<const std::uint64_t> stored;
  };

  /// What one replica has of a prompt.
  struct holding {
    seat_id seat = 0;
    /// Leading tokens of which it has all chunks.
    token_count tokens = 0;
    /// Leading chunks of the first run.
    std::size_t chunks = 0;
  };

  explicit replica_directory(const config& cfg);

  // -- replicas ---------------------------------------------------------------

  /// @param incarnation higher for later lives; the same one again loses what
  ///        was known of it
  /// @returns its seat, if it has one
  welcome join(const std::string& name, std::uint64_t incarnation, seat_id& id);

  /// @pre `join` gave this seat, and it was not left since
  verdict apply(seat_id id, std::uint64_t incarnation, const batch& what);

  /// The replica is gone; so is what it had.
  void leave(seat_id id);

  // -- questions --------------------------------------------------------------

  /// What each replica has of a prompt: the shortest of all runs counts, as a
  /// hit needs every group. Without runs, nothing.
  [[nodiscard]] std::vector<holding>
  holdings(std::span<const chunk_run> runs) const;

  /// Who has most; of several the one that was chosen longest ago, so that
  /// prompts which nobody knows go around. Remembers the choice.
  /// @returns none if there is no replica
  std::optional<holding> choose(const std::vector<holding>& all);

  // -- the whole --------------------------------------------------------------

  [[nodiscard]] const std::string& name_of(seat_id id) const noexcept {
    return seats_[id].name;
  }

  /// Everything that the replica has was named, and nothing was left out.
  [[nodiscard]] bool is_whole(seat_id id) const noexcept;

  /// Chunks that are known of a replica.
  [[nodiscard]] std::size_t keys_of(seat_id id) const noexcept {
    return seats_[id].keys;
  }

  /// There is room again for what was left out of this replica: it should
  /// start over.
  [[nodiscard]] bool could_be_whole(seat_id id) const noexcept;

  [[nodiscard]] std::size_t replicas() const noexcept;

  /// Different chunks.
  [[nodiscard]] std::size_t keys() const noexcept {
    return holders_.size();
  }

  /// What the table takes.
  [[nodiscard]] std::size_t bytes() const noexcept;

private:
  struct seat {
    std::string name;
    std::uint64_t incarnation = 0;
    /// Of the last batch.
    std::uint64_t sequence = 0;
    bool taken = false;
    /// Batches are taken only in step.
    bool in_step = false;
    bool whole = false;
    /// Chunks for which there was no room.
    std::uint64_t left_out = 0;
    std::size_t keys = 0;
    /// Number of the last choice that fell on it.
    std::uint64_t chosen = 0;
  };

  /// A digest is a hash already.
  struct as_is {
    std::size_t operator()(std::uint64_t digest) const noexcept {
      return digest;
    }
  };

  /// By digest: a bit per seat.
  using holders = tsl::robin_map<std::uint64_t, std::uint64_t, as_is>;

  static std::uint64_t bit(seat_id id) noexcept {
    return std::uint64_t{1} << id;
  }

  [[nodiscard]] std::uint64_t taken() const noexcept;

  void add(seat_id id, std::uint64_t digest);

  void remove(seat_id id, std::uint64_t digest);

  /// Forgets all chunks of a replica.
  void clear(seat_id id);

  std::size_t max_keys_;
  std::vector<seat> seats_;
  holders holders_;
  std::uint64_t choices_ = 0;
};

} // namespace kvtide::core
