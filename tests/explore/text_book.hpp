// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "tests/support/token_model.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kvtide::explore {

/// What every request says, and what the keys that were sent stand for.
class text_book : public test::token_model {
public:
  /// Remembers what a key stands for.
  void publish(const chunk_key& key, request_id id, std::size_t chunk,
               token_count chunk_tokens);

  /// The prefixes of the tokens of a chunk; null if nobody sent its key.
  [[nodiscard]] const std::vector<std::uint64_t>*
  tokens(const chunk_key& key) const;

  /// "R3#1": chunk 1 of request 3, who was the first to have it.
  [[nodiscard]] std::string name(const chunk_key& key) const;

private:
  struct chunk {
    std::vector<std::uint64_t> tokens;
    std::string name;
  };

  std::map<chunk_key, chunk> chunks_;
};

} // namespace kvtide::explore
