// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/worker_reader.hpp"

#include "tests/conformance/limits.hpp"
#include "tests/conformance/want.hpp"

namespace kvtide::conformance {

namespace {

std::vector<job_id> job_list(fields& line, const char* name) {
  return line.each(name, [](const json& value, const auto& where) {
    return static_cast<job_id>(to_number(value, where, 0, max_id));
  });
}

worker_step::load load(const json& value, const std::string& where) {
  if (to_list(value, where).size() != 2)
    throw unreadable{'\'' + where + "' is not a pair"};
  return {static_cast<job_id>(to_number(value[0], where, 0, max_id)),
          to_text(value[1], where)};
}

/// A list of ["submit_store", id], ["submit_load", id] and ["wait", [ids]].
json want_actions(const json& value, const std::string& where) {
  return to_each(value, where, [](const json& item, const std::string& at) {
    if (to_list(item, at).size() != 2)
      throw unreadable{'\'' + at + "' is not a pair"};
    const auto& word = to_text(item[0], at);
    if (word == "wait")
      return json{word, want_number_set(item[1], at, max_id)};
    if (word != "submit_store" && word != "submit_load")
      throw unreadable{'\'' + at + "' is \"" + word
                       + "\", want one of submit_store, submit_load, wait"};
    return json{word, to_number(item[1], at, 0, max_id)};
  });
}

json want_step(fields& expect) {
  auto result = json::object();
  for (const auto* name : {"before_forward", "start_transfers"})
    result[name] = want_actions(expect.at(name), expect.path(name));
  result["deferred_after"] = want_numbers(
    expect.at("deferred_after"), expect.path("deferred_after"), max_id);
  result["finished_receiving"] = sorted(
    expect.each("finished_receiving", [](const json& name, const auto& at) {
      return to_text(name, at);
    }));
  const auto& report = expect.at("report");
  result["report"]
    = report.is_null()
      ? json{}
      : want_pairs(report, expect.path("report"), max_id, max_ranks);
  return result;
}

} // namespace

worker_reader::worker_reader(fields& config) {
  result_.store_writer = config.truth("store_writer");
}

void worker_reader::read(fields& line, const std::string& op,
                         std::size_t number) {
  if (op != "worker_step")
    throw unreadable{"unknown op '" + op + "' for level 'worker'"};
  auto out = worker_line{};
  out.number = number;
  out.call.loads = line.each("load_jobs", load);
  out.call.stores = job_list(line, "store_jobs");
  out.call.flush = job_list(line, "flush");
  out.call.done = job_list(line, "done");
  if (const auto* expect = line.find("expect")) {
    auto in = fields{*expect, "expect"};
    out.want = want_step(in);
    in.finish();
  }
  result_.lines.push_back(std::move(out));
}

} // namespace kvtide::conformance
