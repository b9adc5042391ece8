// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kvtide::core {

/// One chunk more, or one less, that every rank has.
struct key_change {
  /// See core/key_hash.hpp.
  std::uint64_t digest = 0;
  bool stored = false;

  friend bool operator==(const key_change&, const key_change&) = default;
};

/// Notes what changes in a pool, in its order, for whoever keeps a picture of
/// it elsewhere. Digests only: nobody trusts such a picture, so it may be wrong
/// once in 2^64. Off, it costs a comparison.
class change_log {
public:
  explicit change_log(bool on) noexcept : on_(on) {
    // nop
  }

  void stored(std::uint64_t digest) {
    if (on_)
      changes_.push_back({digest, true});
  }

  void removed(std::uint64_t digest) {
    if (on_)
      changes_.push_back({digest, false});
  }

  [[nodiscard]] bool empty() const noexcept {
    return changes_.empty();
  }

  [[nodiscard]] std::vector<key_change> take() {
    return std::exchange(changes_, {});
  }

private:
  bool on_;
  std::vector<key_change> changes_;
};

} // namespace kvtide::core
