// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/conformance/scenario.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace kvtide::conformance {

/// Reads the lines of a file of level "connector". Every member throws
/// `unreadable`.
class connector_reader {
public:
  /// @param config the first line, whose common fields are read already
  explicit connector_reader(fields& config);

  void read(fields& line, const std::string& op, std::size_t number);

  [[nodiscard]] connector_scenario take() {
    return std::move(result_);
  }

private:
  // -- calls ------------------------------------------------------------------

  connector_call new_request(fields& line);
  connector_call lookup(fields& line);
  connector_call allocate(fields& line);
  connector_call step(fields& line);
  connector_call completed(fields& line);

  finish_call finish(fields& view);
  step_row row(fields& view);
  void hashes(fields& line, std::vector<extend_keys>& out);

  // -- answers ----------------------------------------------------------------

  json want(fields& expect, const std::string& op);
  json want_jobs(fields& expect, std::string_view name);
  json want_probe(fields& expect);

  // -- helpers ----------------------------------------------------------------

  request_id id_of(const std::string& name);
  std::vector<std::vector<block_id>> block_table(const json& value,
                                                 const std::string& where);

  connector_scenario result_;
  std::map<std::string, request_id> ids_;
  /// By request id: hashes and known tokens so far.
  std::vector<std::uint64_t> hash_count_;
  std::vector<token_count> known_;
};

} // namespace kvtide::conformance
