// SPDX-License-Identifier: Apache-2.0

#include "messages/plan_bytes.hpp"

#include "core/xxh3.hpp"
#include "messages/step_bytes.hpp"

#include <cstdint>
#include <string_view>

namespace kvtide {

namespace {

// Version byte, then a checksum of the rest, low byte first, then the messages
// as they cross processes, behind the epoch.
constexpr char version = 4;
constexpr std::size_t checksum_bytes = 8;
constexpr std::size_t header_bytes = 1 + checksum_bytes;

std::uint64_t checksum(const char* data, std::size_t size) {
  return XXH3_64bits(data, size);
}

} // namespace

std::string encode_plan(const msg::begin_step& begin, const msg::stores& stores,
                        std::uint64_t epoch) {
  std::string result(header_bytes, version);
  auto out = byte_writer{result};
  out.fixed(epoch);
  write(out, begin);
  write(out, stores);
  const auto sum
    = checksum(result.data() + header_bytes, result.size() - header_bytes);
  for (std::size_t i = 0; i < checksum_bytes; ++i)
    result[1 + i] = static_cast<char>(sum >> (8 * i) & 0xFF);
  return result;
}

result<rank_plan> decode_plan(const std::string& bytes) {
  if (bytes.size() > max_plan_bytes || bytes.size() < header_bytes)
    return error{ec::invalid_argument,
                 "these " + std::to_string(bytes.size())
                   + " bytes are no plan: pass step_plan::bytes unchanged"};
  if (bytes[0] != version)
    return error{ec::unsupported,
                 "another version of the library wrote this plan: use the same "
                 "one in all processes"};
  auto header = byte_reader{std::string_view{bytes}.substr(1, checksum_bytes)};
  const auto sum = header.fixed();
  const auto body = std::string_view{bytes}.substr(header_bytes);
  const auto damaged
    = error{ec::invalid_argument,
            "the plan is damaged: pass step_plan::bytes unchanged"};
  if (checksum(body.data(), body.size()) != sum)
    return damaged;
  rank_plan plan;
  auto in = byte_reader{body};
  plan.epoch = in.fixed();
  read(in, plan.begin);
  read(in, plan.stores);
  if (in.failed() || in.remaining() > 0 || plan.begin.step != plan.stores.step)
    return damaged;
  return plan;
}

} // namespace kvtide
