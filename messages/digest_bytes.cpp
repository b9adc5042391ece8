// SPDX-License-Identifier: Apache-2.0

#include "messages/digest_bytes.hpp"

#include <bit>
#include <cstring>

namespace kvtide {

static_assert(std::endian::native == std::endian::little,
              "digests cross processes as they lie in memory");

std::string bytes_of(std::span<const std::uint64_t> digests) {
  const auto bytes = std::as_bytes(digests);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::vector<std::uint64_t>> digests_of(const std::string& bytes) {
  if (bytes.size() % sizeof(std::uint64_t) != 0)
    return std::nullopt;
  auto out = std::vector<std::uint64_t>(bytes.size() / sizeof(std::uint64_t));
  if (!out.empty())
    std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

} // namespace kvtide
