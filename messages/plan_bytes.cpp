// SPDX-License-Identifier: Apache-2.0

#include "messages/plan_bytes.hpp"

#include "core/xxh3.hpp"

#include <caf/actor_system.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

namespace kvtide {

namespace {

// Version byte, then a checksum of the rest, low byte first, then the messages
// as CAF writes them.
constexpr char version = 2;
constexpr std::size_t checksum_bytes = 8;
constexpr std::size_t header_bytes = 1 + checksum_bytes;

std::uint64_t checksum(const char* data, std::size_t size) {
  return XXH3_64bits(data, size);
}

bool all_are(const std::vector<job>& jobs, job_kind kind) {
  return std::all_of(jobs.begin(), jobs.end(),
                     [kind](const job& x) { return x.kind == kind; });
}

} // namespace

std::string encode_plan(caf::actor_system& sys, const msg::begin_step& begin,
                        const msg::stores& stores) {
  std::vector<char> body;
  caf::binary_serializer sink{sys, body};
  // Writing to memory cannot fail.
  [[maybe_unused]] const auto err = sink(begin, stores);
  assert(!err);
  std::string result;
  result.reserve(header_bytes + body.size());
  result.push_back(version);
  const auto sum = checksum(body.data(), body.size());
  for (std::size_t i = 0; i < checksum_bytes; ++i)
    result.push_back(static_cast<char>(sum >> (8 * i) & 0xFF));
  result.append(body.begin(), body.end());
  return result;
}

result<rank_plan> decode_plan(caf::actor_system& sys,
                              const std::string& bytes) {
  if (bytes.size() > max_plan_bytes || bytes.size() < header_bytes)
    return error{ec::invalid_argument,
                 "these " + std::to_string(bytes.size())
                   + " bytes are no plan: pass step_plan::bytes unchanged"};
  if (bytes[0] != version)
    return error{ec::unsupported,
                 "another version of the library wrote this plan: use the same "
                 "one in all processes"};
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < checksum_bytes; ++i)
    sum |= std::uint64_t{static_cast<std::uint8_t>(bytes[1 + i])} << (8 * i);
  const auto* body = bytes.data() + header_bytes;
  const auto size = bytes.size() - header_bytes;
  const auto damaged
    = error{ec::invalid_argument,
            "the plan is damaged: pass step_plan::bytes unchanged"};
  if (checksum(body, size) != sum)
    return damaged;
  rank_plan plan;
  caf::binary_deserializer source{sys, body, size};
  if (source(plan.begin, plan.stores) || source.remaining() > 0)
    return damaged;
  if (plan.begin.step != plan.stores.step
      || !all_are(plan.begin.loads, job_kind::load)
      || !all_are(plan.begin.flushed_stores, job_kind::store)
      || !all_are(plan.stores.jobs, job_kind::store))
    return damaged;
  return plan;
}

} // namespace kvtide
