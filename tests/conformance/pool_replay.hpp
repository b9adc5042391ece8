// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "messages/cache_manager.hpp"
#include "messages/scheduler.hpp"
#include "tests/conformance/recorder.hpp"
#include "tests/conformance/scenario.hpp"
#include "tests/conformance/stage.hpp"

#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace kvtide::conformance {

/// Everything that a cache manager can say.
using cache_answer
  = std::variant<msg::search_result, msg::stores_prepared, msg::load_prepared,
                 msg::rolled_back, msg::cache_events, msg::pool_report,
                 msg::key_states>;

/// Replays a file of level "host_pool" through a cache manager alone. Plays the
/// scheduler.
class pool_replay {
public:
  /// All arguments outlive this.
  pool_replay(const pool_scenario& content, stage& actors, recorder& out);

  void run();

private:
  // Each says one call and returns the answer in the form of `expect`; null if
  // there is none to compare.
  json ask(const lookup_key& call);
  json ask(const touch& call);
  json ask(const prepare_store& call);
  json ask(const complete_store& call);
  json ask(const prepare_load& call);
  json ask(const complete_load& call);
  json ask(const reset_cache& call);
  json ask(const take_events& call);
  json ask(const pool_state& call);

  /// Says one call and lets the cache manager do its work.
  template <class T>
  void say(T call);

  /// The answer to the last call; complains if there is none.
  template <class T>
  std::optional<T> answer();

  const pool_scenario& content_;
  stage& stage_;
  recorder& out_;
  std::shared_ptr<std::vector<cache_answer>> heard_;
  scheduler_cache_port self_;
  cache_manager_actor cache_;
};

} // namespace kvtide::conformance
