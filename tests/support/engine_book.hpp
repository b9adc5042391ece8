// SPDX-License-Identifier: Apache-2.0

/// @file
/// What an engine keeps about its requests, and the calls that follow from it.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/calls.hpp"

#include "core/layout.hpp"
#include "tests/support/memory_shadow.hpp"
#include "tests/support/plan_text.hpp"
#include "tests/support/token_model.hpp"
#include "tests/support/turn.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace kvtide::test {

/// One request, as far as it got.
struct engine_row {
  token_count known = 0;
  token_count computed = 0;
  /// Tokens whose hashes were sent.
  token_count hashed = 0;
  /// Found on the device by the last lookup.
  token_count local = 0;
  /// `computed` once the load in flight is done.
  token_count loading = 0;
  promise_id promise = 0;
  prefix_hash parent;
  bool scheduled = false;
  bool preempted = false;
  block_lists table;
};

class engine_book {
public:
  explicit engine_book(std::shared_ptr<const core::layout> shape);

  /// @pre the request was added
  [[nodiscard]] engine_row& row(request_id id) {
    return rows_.at(id);
  }

  // -- calls ------------------------------------------------------------------

  [[nodiscard]] add_request add(request_id id, token_count prompt_tokens,
                                const add_with& how);

  /// Of known tokens whose hashes were not sent yet.
  [[nodiscard]] std::optional<extend_keys> new_keys(request_id id);

  /// Blocks that lie in `local` whole carry content, unless told otherwise.
  [[nodiscard]] allocated
  allocate(request_id id, const block_lists& blocks, token_count external,
           std::optional<std::vector<std::vector<std::uint8_t>>> hashed);

  /// The next one.
  [[nodiscard]] step_call step(const turn& what);

  /// The next step names it as well.
  [[nodiscard]] finish_call finish(request_id id, finish_reason reason);

  [[nodiscard]] truncate_call truncate(request_id id, token_count tokens);

  /// The engine sleeps: no request has blocks any more.
  void lose_blocks();

  // -- notices ----------------------------------------------------------------

  void note(const load_done& x);

  void note(const load_failed& x);

  // -- what is computed -------------------------------------------------------

  [[nodiscard]] step_id last_step() const noexcept {
    return last_step_;
  }

  /// Compute of a step ends on a rank.
  void compute(step_id step, memory_shadow& memory);

  /// Copies on a rank.
  /// @returns indices of rows whose content is not what their key says
  [[nodiscard]] std::vector<std::size_t> copy(const job& work,
                                              memory_shadow& memory);

  // -- names ------------------------------------------------------------------

  [[nodiscard]] chunk_key key_of(request_id id, group_id group,
                                 std::size_t chunk);

  /// Of all chunks whose keys were sent.
  [[nodiscard]] const plan_text& text() const noexcept {
    return text_;
  }

private:
  /// One request's part of a step's compute.
  struct write {
    request_id request = 0;
    token_count from = 0;
    token_count to = 0;
    block_lists table;
  };

  step_row schedule(const turn_row& what);

  std::shared_ptr<const core::layout> shape_;
  token_model tokens_;
  plan_text text_;
  std::map<request_id, engine_row> rows_;
  std::map<step_id, std::vector<write>> writes_;
  /// Finished since the last step.
  std::vector<finish_call> ended_;
  step_id last_step_ = 0;
};

} // namespace kvtide::test
