// SPDX-License-Identifier: Apache-2.0

/// @file
/// What runs next. Each stream has a thread of its own, so that the thread
/// sanitizer takes work of two streams for unordered unless CUDA orders it; of
/// all that could run, chance lets a few go on at a time, one piece each.

#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <algorithm>
#include <thread>

namespace kvtide::stand_in {
namespace {

bool touches_one_of(const operation& checked,
                    const std::vector<memory_range>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
    return std::any_of(checked.touches.begin(), checked.touches.end(),
                       [&](const auto& x) { return overlap(x, range); });
  });
}

bool done(const completion_ptr& end) {
  return end->done;
}

} // namespace

cudaError_t machine::enter(const stream_ptr& to,
                           std::shared_ptr<operation> entering) {
  if (const auto code = check_usable(*to); code != cudaSuccess)
    return code;
  if (to->capturing)
    capture_work(*to);
  else
    submit(*to, std::move(entering));
  return cudaSuccess;
}

void machine::submit(stream& to, std::shared_ptr<operation> submitted) {
  // CUDA Runtime API, stream synchronization behavior: the legacy default
  // stream waits for all blocking streams of its device, and they wait for it.
  for (const auto& other : streams)
    if (other->device == to.device && other->tail
        && (to.legacy ? other->blocking : to.blocking && other->legacy))
      submitted->waits.push_back(other->tail);
  submitted->submitted.release();
  for (const auto& used : submitted->regions)
    ++used->uses;
  to.tail = submitted->done;
  to.queue.push_back(std::move(submitted));
  if (wanted.threads == 0)
    return;
  if (!to.worker.joinable()) {
    const auto served
      = *std::find_if(streams.begin(), streams.end(),
                      [&](const auto& x) { return x.get() == &to; });
    to.worker = std::thread{[this, served] { work(served); }};
  }
  choose();
}

bool machine::can_run(const stream& checked) const {
  if (checked.queue.empty() || checked.busy
      || context_of(checked.device) != cudaSuccess)
    return false;
  const auto& next = *checked.queue.front();
  if (!next.begun)
    return std::all_of(next.waits.begin(), next.waits.end(), done);
  return next.next_piece == 0 || !touches_one_of(next, hanging);
}

std::vector<stream_ptr> machine::all_that_can_run() const {
  std::vector<stream_ptr> found;
  for (const auto& x : streams)
    if (can_run(*x))
      found.push_back(x);
  return found;
}

void machine::run_piece(const stream_ptr& running) {
  const auto op = running->queue.front();
  running->busy = true;
  if (!op->begun) {
    op->begun = true;
    op->submitted.acquire();
    for (const auto& end : op->waits)
      end->edge.acquire();
    const auto fault
      = std::find_if(run_faults.begin(), run_faults.end(), [&](const auto& x) {
          return touches_one_of(*op, {x.range});
        });
    if (fault != run_faults.end()) {
      op->breaks_context = fault->code;
      run_faults.erase(fault);
    }
  }
  if (op->next_piece < op->pieces.size()) {
    auto piece = std::move(op->pieces[op->next_piece++]);
    mutex.unlock();
    in_host_function() = op->host_function;
    piece();
    // What it holds is the program's, and released where the sanitizer sees it.
    piece = nullptr;
    in_host_function() = false;
    mutex.lock();
  }
  running->busy = false;
  if (op->breaks_context != cudaSuccess)
    lose(running->device, op->breaks_context);
  else if (context_of(running->device) == cudaSuccess
           && op->next_piece == op->pieces.size())
    finish(*running, *op);
  changed.notify_all();
}

void machine::finish(stream& finished_in, operation& finished) {
  finished.done->edge.release();
  finished.done->tick = ++ticks;
  finished.done->done = true;
  for (const auto& used : finished.regions)
    --used->uses;
  finished_in.queue.pop_front();
  if (finished_in.destroyed)
    finished_in.wake.notify_all();
}

void machine::choose() {
  while (working < wanted.threads && !stopping) {
    const auto found = all_that_can_run();
    if (found.empty())
      return;
    const auto& next = found[draw(found.size())];
    next->busy = true;
    next->chosen = true;
    ++working;
    next->wake.notify_all();
  }
}

void machine::work(const stream_ptr& served) {
  mutex.lock();
  while (true) {
    while (!served->chosen && !stopping
           && !(served->destroyed && served->queue.empty()))
      mutex.wait(served->wake);
    if (stopping || !served->chosen)
      break;
    served->chosen = false;
    // Lets threads of the program and other streams go first, at random.
    for (auto turns = draw(4); turns > 0; --turns) {
      mutex.unlock();
      std::this_thread::yield();
      mutex.lock();
    }
    served->busy = false;
    if (can_run(*served))
      run_piece(served);
    --working;
    choose();
  }
  mutex.unlock();
}

cudaError_t machine::wait_for(const std::vector<completion_ptr>& ends,
                              int device) {
  while (!std::all_of(ends.begin(), ends.end(), done)) {
    if (const auto code = context_of(device); code != cudaSuccess)
      return code;
    const auto found = all_that_can_run();
    if (wanted.threads == 0 && !found.empty())
      run_piece(found[draw(found.size())]);
    else if (wanted.threads > 0
             || std::any_of(streams.begin(), streams.end(),
                            [](const auto& x) { return x->busy; }))
      mutex.wait(changed);
    else
      // A real machine would hang here; a test had better end.
      return refuse(cudaErrorLaunchTimeout,
                    "waits for work that nothing will finish");
  }
  for (const auto& end : ends)
    end->edge.acquire();
  return context_of(device);
}

cudaError_t machine::wait_until_unused(const region& used, int device) {
  std::vector<completion_ptr> ends;
  for (const auto& x : streams)
    for (const auto& op : x->queue)
      for (const auto& touched : op->regions)
        if (touched.get() == &used)
          ends.push_back(op->done);
  return wait_for(ends, device);
}

} // namespace kvtide::stand_in
