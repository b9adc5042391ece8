// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/copy_lane.hpp"

#include "gpu/cuda/keep_for_ever.hpp"
#include "gpu/cuda/pool_registration.hpp"
#include "gpu/fragments.hpp"

#include <limits>
#include <utility>

namespace kvtide::gpu {

namespace {

/// A host function: wakes the owner and does nothing else (G1).
void call_wake(void* data) {
  (*static_cast<const wake_function*>(data))();
}

} // namespace

result<std::unique_ptr<copy_lane>> copy_lane::make(config how) {
  auto copies = make_stream(how.urgent);
  if (!copies)
    return copies.failure();
  auto wakes = make_stream();
  if (!wakes)
    return wakes.failure();
  auto bounce = bounce_buffer{};
  if (how.pool == nullptr) {
    auto made = bounce_buffer::make(how.bounce_bytes);
    if (!made)
      return made.failure();
    bounce = std::move(made).value();
  }
  return std::unique_ptr<copy_lane>{
    new copy_lane{how, std::move(copies).value(), std::move(wakes).value(),
                  std::move(bounce)}};
}

copy_lane::copy_lane(config how, cuda_stream copies, cuda_stream wakes,
                     bounce_buffer bounce)
  : config_(how), copies_(std::move(copies)), wakes_(std::move(wakes)),
    bounce_(std::move(bounce)),
    commands_(how.how, *how.tables,
              [this](const void* host, std::uint64_t bytes) {
                return device_view(host, bytes);
              }) {
  // nop
}

std::uint64_t copy_lane::most_bytes() const noexcept {
  return config_.pool != nullptr ? std::numeric_limits<std::uint64_t>::max()
                                 : bounce_.room();
}

void* copy_lane::device_view(const void* host, std::uint64_t bytes) const {
  return config_.pool != nullptr ? config_.pool->device_address(host, bytes)
                                 : bounce_.device_address(host);
}

std::uint64_t copy_lane::enqueue(const std::shared_ptr<cuda_job>& job,
                                 std::vector<fragment> what) {
  auto made = slice{};
  made.job = job;
  made.bytes = total_bytes(what);
  auto under_way = start(job->kind, what, made);
  made.table = std::move(under_way.table);
  if (under_way.why.code != ec::none) {
    const auto row = what.empty() ? 0 : what[under_way.count].row;
    job->stop(std::move(under_way.why.text), row);
    job->copied_bytes += bytes_before_row(what, row);
  } else {
    job->copied_bytes += made.bytes;
  }
  record_end(made);
  job->end = made.end.get();
  ++job->slices;
  ++job->slices_under_way;
  wake_behind(made);
  const auto bytes = made.bytes;
  under_way_.push_back(std::move(made));
  return bytes;
}

enqueued_fragments copy_lane::start(job_kind kind, std::vector<fragment>& what,
                                    slice& out) {
  if (config_.pool != nullptr || what.empty())
    return commands_.enqueue(kind, what, stream());
  out.move = bounce_.redirect(kind, what);
  const auto move = [&] {
    return check(
      "cudaLaunchHostFunc",
      ::cudaLaunchHostFunc(stream(), make_bounce_move, out.move.get()));
  };
  if (kind == job_kind::load)
    if (auto why = move(); why.code != ec::none)
      return {0, std::move(why), nullptr};
  auto under_way = commands_.enqueue(kind, what, stream());
  // What was not copied would be moved to the pool as well.
  if (kind == job_kind::store) {
    out.move->parts.resize(under_way.count);
    if (auto why = move(); why.code != ec::none)
      return {0, std::move(why), std::move(under_way.table)};
  }
  return under_way;
}

std::optional<copy_lane::ended_slice> copy_lane::take_ended(error& lost) {
  if (under_way_.empty())
    return std::nullopt;
  auto& oldest = under_way_.front();
  const auto end = oldest.end.get();
  const auto status
    = end != nullptr ? ::cudaEventQuery(end) : ::cudaStreamQuery(stream());
  if (status == cudaErrorNotReady) {
    ignore(status);
    return std::nullopt;
  }
  if (status != cudaSuccess) {
    lost = check(end != nullptr ? "cudaEventQuery" : "cudaStreamQuery", status);
    return std::nullopt;
  }
  auto out
    = ended_slice{std::move(oldest.job), oldest.bytes, std::move(oldest.end)};
  under_way_.pop_front();
  return out;
}

bool copy_lane::idle() const {
  if (!under_way_.empty())
    return false;
  for (auto* one : {wakes_.get(), stream()})
    if (const auto status = ::cudaStreamQuery(one); status != cudaSuccess) {
      ignore(status);
      return false;
    }
  return true;
}

void copy_lane::abandon() {
  copies_.release();
  wakes_.release();
  bounce_.abandon();
  for (auto& one : under_way_) {
    one.end.release();
    keep_for_ever(std::move(one.move));
  }
}

void copy_lane::record_end(slice& what) {
  auto end = config_.events->take();
  if (!end)
    return;
  if (check("cudaEventRecord", ::cudaEventRecord(end.value().get(), stream()))
        .code
      == ec::none)
    what.end = std::move(end).value();
  else
    config_.events->put(std::move(end).value());
}

void copy_lane::wake_behind(const slice& what) {
  // Without an event only the copies' own stream knows the end: a call there
  // may hold up the copies behind it (G1), but silence would last until a
  // deadline.
  auto* side = wakes_.get();
  if (what.end.get() == nullptr)
    side = stream();
  else if (const auto behind = ::cudaStreamWaitEvent(side, what.end.get(), 0);
           behind != cudaSuccess) {
    ignore(behind);
    side = stream();
  }
  // Whoever is not woken finds out at the next call, or at the deadline.
  ignore(::cudaLaunchHostFunc(side, call_wake,
                              const_cast<wake_function*>(config_.wake)));
}

} // namespace kvtide::gpu
