// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace kvtide {

/// What a rank's thread may ask of the streams on which it computes, while its
/// memory is registered on a GPU. Called on that thread; must not block.
struct compute_calls {
  /// See `rank::record_event`.
  std::function<result<std::uint64_t>(std::uint64_t stream)> record;

  /// @returns no error, or `ec::out_of_order` while a registered stream is
  ///          being captured (G6)
  std::function<error()> check_not_capturing;
};

/// Where a rank's device leaves these for the rank's thread. Any thread; no
/// call blocks but for a lock held while a pointer is copied, so what was left
/// is never gone while somebody uses it.
class compute_side {
public:
  /// @param calls both set
  void open(compute_calls calls);

  /// Nobody may call them any more; a call that runs ends first or keeps alive
  /// what it needs.
  void close();

  /// The device can do nothing any more, and no other one in this process can
  /// (G7). Closes.
  void lose(error why);

  /// @returns as `rank::record_event`
  [[nodiscard]] result<std::uint64_t> record(std::uint64_t stream) const;

  /// @returns no error if closed
  [[nodiscard]] error check_not_capturing() const;

  /// @returns no error unless `lose` was called
  [[nodiscard]] error lost() const;

private:
  [[nodiscard]] std::shared_ptr<const compute_calls> calls() const;

  mutable std::mutex mutex_;
  std::shared_ptr<const compute_calls> calls_;
  error lost_;
};

} // namespace kvtide
