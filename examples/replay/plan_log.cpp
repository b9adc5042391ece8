// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/plan_log.hpp"

#include "examples/replay/replay_failure.hpp"

#include <cerrno>
#include <cstring>

namespace kvtide::replay {

namespace {

void append_hex(std::string& out, const prefix_hash& hash) {
  constexpr char digits[] = "0123456789abcdef";
  for (auto index = std::size_t{0}; index < hash.size(); ++index) {
    out += digits[hash.data()[index] >> 4];
    out += digits[hash.data()[index] & 15];
  }
}

void append(std::string& out, const job& what) {
  out += what.kind == job_kind::load ? "; load " : "; store ";
  out += std::to_string(what.id) + " of " + std::to_string(what.request);
  for (const auto& row : what.rows) {
    out += ", chunk " + std::to_string(row.key.group) + ":"
         + std::to_string(row.chunk) + " slot " + std::to_string(row.slot)
         + " key ";
    append_hex(out, row.key.hash);
    out += " blocks";
    for (const auto block : row.blocks)
      out.append(1, ' ').append(std::to_string(block));
  }
}

} // namespace

std::string to_text(const step_plan& plan) {
  auto res = "step " + std::to_string(plan.step);
  for (const auto& load : plan.loads)
    append(res, load);
  for (const auto& store : plan.stores)
    append(res, store);
  if (!plan.flush.empty())
    res += "; flush";
  for (const auto id : plan.flush)
    res.append(1, ' ').append(std::to_string(id));
  return res;
}

plan_log::plan_log(const std::string& path) : path_(path) {
  if (path.empty())
    return;
  file_.open(path);
  if (!file_)
    throw bad_configuration{path
                            + ": cannot be written: " + std::strerror(errno)};
}

void plan_log::note(const step_plan& plan) {
  if (file_.is_open())
    file_ << to_text(plan) << '\n';
}

void plan_log::close() {
  if (file_.is_open() && !file_.flush())
    throw bad_configuration{path_ + ": cannot be written"};
}

} // namespace kvtide::replay
