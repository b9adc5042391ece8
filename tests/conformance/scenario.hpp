// SPDX-License-Identifier: Apache-2.0

/// @file
/// One vector file, read and checked. docs/conformance.md describes the format.

#pragma once

#include "kvtide/calls.hpp"
#include "kvtide/ids.hpp"
#include "kvtide/key.hpp"
#include "kvtide/options.hpp"

#include "core/layout.hpp"
#include "tests/conformance/json_fields.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace kvtide::conformance {

// -- level "connector" --------------------------------------------------------

/// `completed`: reports that arrive, in this order.
struct reports {
  struct entry {
    job_id job = 0;
    /// The lowest ranks that have not reported this job yet report it.
    std::uint32_t count = 0;
  };

  std::vector<entry> jobs;
};

struct reset_cache {};
struct take_events {};
struct probe {};

/// The public structs where a call has one. Their step numbers are filled in
/// by the replay.
using connector_call
  = std::variant<add_request, lookup_row, allocated, step_call, finish_call,
                 reports, reset_cache, take_events, probe>;

struct connector_line {
  std::size_t number = 0;
  /// As the file names the call.
  std::string op;
  /// To be said before the call; after it if the call is `new_request`.
  std::vector<extend_keys> hashes;
  connector_call call;
  /// What is to be answered, sets sorted, keys in lower case; null for nothing.
  json want;
};

struct connector_scenario {
  options opts;
  std::shared_ptr<const core::layout> shape;
  std::uint64_t host_chunks = 0;
  /// By request id.
  std::vector<std::string> names;
  std::vector<connector_line> lines;
};

// -- level "host_pool" --------------------------------------------------------

struct lookup_key {
  chunk_key key;
};

struct touch {
  std::vector<chunk_key> keys;
};

struct prepare_store {
  std::vector<chunk_key> keys;
};

struct complete_store {
  std::vector<chunk_key> keys;
  bool success = true;
};

struct prepare_load {
  std::vector<chunk_key> keys;
};

struct complete_load {
  std::vector<chunk_key> keys;
};

struct pool_state {};

using pool_call
  = std::variant<lookup_key, touch, prepare_store, complete_store, prepare_load,
                 complete_load, reset_cache, take_events, pool_state>;

struct pool_line {
  std::size_t number = 0;
  std::string op;
  pool_call call;
  json want;
};

struct pool_scenario {
  options opts;
  std::shared_ptr<const core::layout> shape;
  std::uint64_t host_chunks = 0;
  std::vector<pool_line> lines;
};

// -- level "worker" -----------------------------------------------------------

struct worker_step {
  struct load {
    job_id job = 0;
    std::string request;
  };

  std::vector<load> loads;
  std::vector<job_id> stores;
  std::vector<job_id> flush;
  /// Transfers that end in this step.
  std::vector<job_id> done;
};

struct worker_line {
  std::size_t number = 0;
  worker_step call;
  json want;
};

struct worker_scenario {
  bool store_writer = true;
  std::vector<worker_line> lines;
};

// -----------------------------------------------------------------------------

struct scenario {
  /// As messages name the file.
  std::string path;
  std::string name;
  /// Of the whole file, the first one included.
  std::size_t line_count = 0;
  std::variant<connector_scenario, pool_scenario, worker_scenario> content;
};

} // namespace kvtide::conformance
