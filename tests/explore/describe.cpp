// SPDX-License-Identifier: Apache-2.0

#include "tests/explore/describe.hpp"

#include "messages/all.hpp"
#include "messages/cache_manager.hpp"
#include "messages/device.hpp"
#include "messages/gpu_worker.hpp"
#include "messages/request.hpp"
#include "messages/scheduler.hpp"
#include "tests/support/message_name.hpp"

#include <typeinfo>

namespace kvtide::explore {

namespace {

template <class Range, class Function>
std::string listed(const Range& range, Function fun) {
  auto out = std::string{};
  for (const auto& x : range)
    out += (out.empty() ? "" : " ") + fun(x);
  return out;
}

template <class Range>
std::string numbers(const Range& range) {
  return "[" + listed(range, [](auto x) { return std::to_string(x); }) + "]";
}

std::string jobs(const std::vector<job>& range, const text_book& texts) {
  return listed(range, [&](const job& x) { return describe(x, texts); });
}

std::string ids(const std::vector<job>& range) {
  return "[" + listed(range, [](const job& x) { return std::to_string(x.id); })
       + "]";
}

// What matters of a message; nothing for most.

std::string detail(const msg::step& x, const text_book&) {
  return std::to_string(x.call.step) + " rows "
       + listed(x.call.rows,
                [](const step_row& row) {
                  return std::to_string(row.request) + ":"
                       + std::to_string(row.computed) + "+"
                       + std::to_string(row.scheduled);
                })
       + " preempted " + numbers(x.call.preempted) + " finished "
       + listed(x.call.finished,
                [](const finish_call& y) { return std::to_string(y.request); });
}

std::string detail(const msg::finish& x, const text_book&) {
  return std::to_string(x.call.request) + " known "
       + std::to_string(x.call.known) + " computed "
       + std::to_string(x.call.computed);
}

std::string detail(const msg::lookup& x, const text_book&) {
  return listed(
    x.rows, [](const lookup_row& row) { return std::to_string(row.request); });
}

std::string detail(const msg::explain& x, const text_book&) {
  return std::to_string(x.request);
}

std::string detail(const msg::allocate& x, const text_book&) {
  return std::to_string(x.call.request) + " takes "
       + std::to_string(x.call.external);
}

std::string detail(const msg::begin_step& x, const text_book& texts) {
  return std::to_string(x.step) + " loads " + jobs(x.loads, texts) + " stores "
       + jobs(x.flushed_stores, texts) + " flush " + numbers(x.flush);
}

std::string detail(const msg::stores& x, const text_book& texts) {
  return std::to_string(x.step) + " " + jobs(x.jobs, texts);
}

std::string detail(const msg::submit_jobs& x, const text_book&) {
  return ids(x.jobs) + " after " + numbers(x.after);
}

std::string detail(const msg::make_fence& x, const text_book&) {
  return std::to_string(x.step) + " " + numbers(x.jobs);
}

std::string detail(const msg::end_step& x, const text_book&) {
  return std::to_string(x.step);
}

std::string detail(const msg::copies_done& x, const text_book&) {
  auto out = std::string{};
  for (const auto& one : x.jobs)
    out += (out.empty() ? "" : ", ") + std::to_string(one.job)
         + (one.ok ? "" : " failed");
  return out;
}

std::string detail(const msg::transfers_done& x, const text_book&) {
  constexpr const char* names[] = {"done", "failed", "late", "drained"};
  auto out = std::string{};
  for (const auto& one : x.reports)
    out += (out.empty() ? "" : ", ") + std::to_string(one.job) + " rank "
         + std::to_string(one.rank) + " "
         + names[static_cast<std::size_t>(one.status) % 4];
  return out;
}

std::string detail(const step_ready& x, const text_book&) {
  return std::to_string(x.step);
}

template <class T>
bool detail_if(const caf::type_erased_tuple& content, const text_book& texts,
               std::string& out) {
  if (!content.match_elements<T>())
    return false;
  out = detail(content.get_as<T>(0), texts);
  return true;
}

template <class... Ts>
std::string details(const caf::type_erased_tuple& content,
                    const text_book& texts) {
  auto out = std::string{};
  (void)(detail_if<Ts>(content, texts, out) || ...);
  return out;
}

struct line_of {
  std::string operator()(const lookup_answer& x) const {
    return "lookup " + listed(x.hits, [](const lookup_hit& hit) {
             return std::to_string(hit.request) + " "
                  + (hit.ask_again ? "again" : std::to_string(hit.tokens)) + "/"
                  + std::to_string(hit.promise);
           });
  }

  std::string operator()(const step_plan& x) const {
    return "step " + std::to_string(x.step) + " " + jobs(x.loads, texts) + " "
         + jobs(x.stores, texts) + " flush " + numbers(x.flush)
         + (x.pending_work ? " pending" : "");
  }

  std::string operator()(const finish_answer& x) const {
    return "finish " + std::to_string(x.request) + " " + numbers(x.held);
  }

  std::string operator()(const call_done& x) const {
    return "done " + numbers(x.in_flight);
  }

  std::string operator()(const call_failed& x) const {
    return "failed: " + x.reason.text;
  }

  std::string operator()(const load_done& x) const {
    return "load_done " + std::to_string(x.request) + " "
         + std::to_string(x.job);
  }

  std::string operator()(const load_failed& x) const {
    return "load_failed " + std::to_string(x.request) + " "
         + std::to_string(x.job) + " from " + std::to_string(x.first_bad_token)
         + (x.use_new_blocks ? " new blocks for " : " in ") + numbers(x.blocks);
  }

  std::string operator()(const blocks_released& x) const {
    return "released " + std::to_string(x.request) + " " + numbers(x.blocks);
  }

  std::string operator()(const explain_answer& x) const {
    return "explain " + std::to_string(x.request) + " "
         + (x.ask_again ? "again" : std::to_string(x.tokens)) + " "
         + to_string(x.reason);
  }

  std::string operator()(const rank_lost& x) const {
    return "rank_lost " + std::to_string(x.rank);
  }

  std::string operator()(const rank_back& x) const {
    return "rank_back " + std::to_string(x.rank);
  }

  template <class Other>
  std::string operator()(const Other&) const {
    return test::message_name(typeid(Other));
  }

  const text_book& texts;
};

} // namespace

std::string describe(const job& work, const text_book& texts) {
  const auto* arrow = work.kind == job_kind::store ? " <- " : " -> ";
  return (work.kind == job_kind::store ? "S" : "L") + std::to_string(work.id)
       + "{"
       + listed(work.rows,
                [&](const job_row& row) {
                  return texts.name(row.key) + " slot "
                       + std::to_string(row.slot) + arrow + numbers(row.blocks);
                })
       + "}";
}

std::string describe(const msg::begin_step& what, const text_book& texts) {
  return "begin_step " + detail(what, texts);
}

std::string describe(const msg::stores& what, const text_book& texts) {
  return "stores " + detail(what, texts);
}

std::string describe(const engine_event& what, const text_book& texts) {
  return std::visit(line_of{texts}, what);
}

std::string describe(const caf::mailbox_element& what, const text_book& texts) {
  const auto& content = what.content();
  const auto* type = content.empty() ? nullptr : content.type(0).second;
  if (type == nullptr)
    return content.stringify();
  const auto more
    = details<msg::step, msg::finish, msg::lookup, msg::explain, msg::allocate,
              msg::begin_step, msg::stores, msg::submit_jobs, msg::make_fence,
              msg::end_step, msg::copies_done, msg::transfers_done, step_ready>(
      content, texts);
  return test::message_name(*type) + (more.empty() ? "" : " ") + more;
}

} // namespace kvtide::explore
