// SPDX-License-Identifier: Apache-2.0

#include "messages/step_bytes.hpp"

#include "messages/gpu_worker.hpp"
#include "messages/job_bytes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvtide::msg {

namespace {

std::vector<job> read_jobs(byte_reader& in, job_reader& jobs, job_kind kind) {
  auto result = jobs.read();
  if (!std::all_of(result.begin(), result.end(),
                   [kind](const job& x) { return x.kind == kind; }))
    in.fail();
  return result;
}

template <class Message>
std::string bytes_of(const Message& x) {
  std::string result;
  auto out = byte_writer{result};
  write(out, x);
  return result;
}

template <class Message>
bool read_all(std::string_view bytes, Message& x) {
  auto in = byte_reader{bytes};
  read(in, x);
  return !in.failed() && in.remaining() == 0;
}

} // namespace

void write(byte_writer& out, const begin_step& x) {
  out.number(x.step);
  out.number(x.settled_below);
  auto jobs = job_writer{out};
  jobs.write(x.loads);
  jobs.write(x.flushed_stores);
  out.number(x.flush.size());
  auto next = x.settled_below;
  for (const auto id : x.flush) {
    out.near(id, next);
    next = id + 1;
  }
}

void write(byte_writer& out, const stores& x) {
  out.number(x.step);
  auto jobs = job_writer{out};
  jobs.write(x.jobs);
}

void read(byte_reader& in, begin_step& x) {
  x.step = in.number();
  x.settled_below = in.number();
  auto jobs = job_reader{in};
  x.loads = read_jobs(in, jobs, job_kind::load);
  x.flushed_stores = read_jobs(in, jobs, job_kind::store);
  x.flush.resize(in.count());
  auto next = x.settled_below;
  for (auto& id : x.flush) {
    id = in.near(next);
    next = id + 1;
  }
}

void read(byte_reader& in, stores& x) {
  x.step = in.number();
  auto jobs = job_reader{in};
  x.jobs = read_jobs(in, jobs, job_kind::store);
}

std::string to_bytes(const begin_step& x) {
  return bytes_of(x);
}

std::string to_bytes(const stores& x) {
  return bytes_of(x);
}

bool from_bytes(std::string_view bytes, begin_step& x) {
  return read_all(bytes, x);
}

bool from_bytes(std::string_view bytes, stores& x) {
  return read_all(bytes, x);
}

std::vector<stores> in_parts(stores x) {
  std::vector<stores> result;
  constexpr std::size_t header = 20; // Step and number of jobs.
  auto first = x.jobs.begin();
  auto bytes = header;
  const auto end_part = [&](std::vector<job>::iterator end) {
    result.push_back(
      {x.step, {std::make_move_iterator(first), std::make_move_iterator(end)}});
    first = end;
    bytes = header;
  };
  for (auto work = x.jobs.begin(); work != x.jobs.end(); ++work) {
    const auto more = most_bytes_of(*work);
    if (work != first && bytes + more > most_bytes_of_stores)
      end_part(work);
    bytes += more;
  }
  if (result.empty() && !x.jobs.empty())
    result.push_back(std::move(x)); // Most steps.
  else if (first != x.jobs.end())
    end_part(x.jobs.end());
  return result;
}

} // namespace kvtide::msg
