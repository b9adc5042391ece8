// SPDX-License-Identifier: Apache-2.0

/// @file
/// Lets CAF read and write the public value types that cross processes.

#pragma once

#include "kvtide/job.hpp"

#include <caf/error.hpp>
#include <caf/meta/load_callback.hpp>
#include <caf/meta/save_callback.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/sec.hpp>

#include <string>
#include <utility>
#include <vector>

namespace kvtide {

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, prefix_hash& x) {
  auto bytes = std::string(reinterpret_cast<const char*>(x.data()), x.size());
  auto load = [&x, &bytes]() -> caf::error {
    if (bytes.size() > prefix_hash::max_bytes)
      return caf::sec::invalid_argument;
    x = prefix_hash{bytes.data(), bytes.size()};
    return caf::none;
  };
  return f(caf::meta::type_name("prefix_hash"), bytes,
           caf::meta::load_callback(load));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, chunk_key& x) {
  return f(caf::meta::type_name("chunk_key"), x.hash, x.group, x.model);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, job_row& x) {
  return f(caf::meta::type_name("job_row"), x.key, x.slot, x.chunk, x.blocks);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, job& x) {
  auto rows = std::vector<job_row>(x.rows.begin(), x.rows.end());
  auto load = [&x, &rows]() -> caf::error {
    x.rows = std::move(rows);
    return caf::none;
  };
  return f(caf::meta::type_name("job"), x.id, x.kind, x.request, rows,
           caf::meta::load_callback(load));
}

} // namespace kvtide
