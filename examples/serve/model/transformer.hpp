// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "examples/serve/model/model_shape.hpp"
#include "examples/serve/model/rotary.hpp"
#include "examples/serve/model/weights.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace serve {

/// Memory for one token on its way through the model; one per thread.
struct workspace {
  std::array<float, model_shape::width> stream;
  std::array<float, model_shape::width> normal;
  std::array<float, model_shape::heads * model_shape::head_width> query;
  std::array<float, model_shape::heads * model_shape::head_width> attended;
  std::array<float, model_shape::width> change;
  std::array<float, model_shape::hidden> gate;
  std::array<float, model_shape::hidden> up;
  std::array<float, model_shape::vocabulary> logits;
  /// Of one group of query heads, for all positions.
  std::vector<float> scores;
};

/// A decoder-only transformer: root mean square norms, rotary positions,
/// grouped-query attention, gated MLPs.
///
/// What a token leaves behind, its KV and its logits, follows to the last bit
/// from its id, its position and the KV before it. How tokens are put into
/// batches, or where KV lies, changes nothing.
///
/// Thread-safety: calls from several threads are fine, each with a workspace
/// and KV of its own.
class transformer {
public:
  /// @param max_tokens the longest request
  transformer(model_variant variant, std::uint64_t seed,
              std::int32_t max_tokens);

  [[nodiscard]] const model_shape& shape() const noexcept {
    return shape_;
  }

  /// Names weights and layout, as kvtide wants it.
  [[nodiscard]] std::string fingerprint() const;

  /// Puts one token through all layers: its KV is written, and
  /// `workspace::stream` holds what its output is made of.
  /// @pre the KV of all positions that it attends to is there
  template <class Kv>
  void compute(token_id token, std::int32_t position, Kv& kv,
               workspace& room) const;

  /// The token that follows the last one computed: that with the highest logit,
  /// of equal ones the lowest.
  [[nodiscard]] token_id next_token(workspace& room) const;

private:
  template <class Kv>
  void attend(std::size_t layer, std::int32_t position, Kv& kv,
              workspace& room) const;

  model_shape shape_;
  std::uint64_t seed_;
  weights weights_;
  rotary rotary_;
};

} // namespace serve
