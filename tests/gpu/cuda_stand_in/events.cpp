// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <algorithm>

namespace kvtide::stand_in {
namespace {

/// Makes a capture wait for work that it captured, and a stream part of the
/// capture that the event belongs to.
cudaError_t wait_captured(machine& m, const stream_ptr& waiting,
                          const event& awaited) {
  if (!awaited.captured->active)
    return m.refuse(cudaErrorCapturedEvent,
                    "the event was recorded in a capture that has ended");
  if (awaited.captured->invalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (waiting->legacy) {
    awaited.captured->invalidated = true;
    return m.refuse(cudaErrorStreamCaptureImplicit,
                    "the legacy stream cannot be captured");
  }
  if (waiting->capturing && waiting->capturing != awaited.captured) {
    waiting->capturing->invalidated = true;
    awaited.captured->invalidated = true;
    return m.refuse(cudaErrorStreamCaptureMerge, "would join two captures");
  }
  // CUDA programming guide, cross-stream dependencies: a stream that waits for
  // a captured event is captured from then on, and must be joined again.
  if (!waiting->capturing) {
    m.warn("the stream is captured from now on, and its work does not run");
    waiting->capturing = awaited.captured;
    waiting->before.clear();
    m.capture_work(*waiting);
  }
  for (const auto& [id, length] : awaited.before)
    waiting->before[id] = std::max(waiting->before[id], length);
  return cudaSuccess;
}

/// For what waits for an event or asks how far it is.
cudaError_t check_queryable(machine& m, const event& asked) {
  if (!asked.captured)
    return m.check_unsafe();
  if (asked.captured->active)
    asked.captured->invalidated = true;
  return m.refuse(cudaErrorCapturedEvent,
                  "the event was last recorded in a capture");
}

} // namespace

cudaError_t machine::find_event(cudaEvent_t searched, event_ptr& found) {
  const auto live = live_events.find(reinterpret_cast<object_id>(searched));
  if (live == live_events.end())
    return refuse(cudaErrorInvalidResourceHandle,
                  "an event that was destroyed or never made");
  found = live->second;
  return context_of(found->device);
}

} // namespace kvtide::stand_in

using namespace kvtide::stand_in;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned int flags) {
  return call("cudaEventCreateWithFlags", needs::context, [&](machine& m) {
    const bool shared_needs_untimed = (flags & cudaEventInterprocess) != 0
                                   && (flags & cudaEventDisableTiming) == 0;
    if (made == nullptr || flags > 7 || shared_needs_untimed)
      return m.refuse(cudaErrorInvalidValue, "no pointer, or wrong flags");
    const auto id = m.new_handle();
    m.live_events[id] = std::make_shared<event>(
      event{m.me().device, (flags & cudaEventDisableTiming) == 0, {}, {}, {}});
    *made = reinterpret_cast<cudaEvent_t>(id);
    return cudaSuccess;
  });
}

// CUDA Runtime API, cudaEventDestroy: legal while the event is pending; who
// waits for it already goes on waiting.
cudaError_t cudaEventDestroy(cudaEvent_t destroyed) {
  return call("cudaEventDestroy", needs::handle, [&](machine& m) {
    event_ptr found;
    if (const auto code = m.find_event(destroyed, found); code != cudaSuccess)
      return code;
    m.live_events.erase(reinterpret_cast<object_id>(destroyed));
    return cudaSuccess;
  });
}

// CUDA Runtime API, cudaEventRecord: captures what the stream holds now, in
// place of what was captured before; event and stream belong to one context.
cudaError_t cudaEventRecord(cudaEvent_t recorded, cudaStream_t stream) {
  return call("cudaEventRecord", needs::handle, [&](machine& m) {
    event_ptr marked;
    stream_ptr found;
    if (const auto code = m.find_event(recorded, marked); code != cudaSuccess)
      return code;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (marked->device != found->device)
      return m.refuse(cudaErrorInvalidResourceHandle,
                      "event and stream are of different devices");
    if (found->capturing) {
      if (const auto code = m.check_usable(*found); code != cudaSuccess)
        return code;
      marked->captured = found->capturing;
      marked->before = found->before;
      marked->recorded = nullptr;
      return cudaSuccess;
    }
    auto made = std::make_shared<operation>();
    const auto end = made->done;
    if (const auto code = m.enter(found, std::move(made)); code != cudaSuccess)
      return code;
    marked->captured = nullptr;
    marked->recorded = end;
    return cudaSuccess;
  });
}

// CUDA Runtime API, cudaStreamWaitEvent: waits for the most recent record at
// the time of the call; an event that was never recorded is no work at all.
// Stream and event may be of different devices.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t awaited,
                                unsigned int flags) {
  return call("cudaStreamWaitEvent", needs::handle, [&](machine& m) {
    stream_ptr found;
    event_ptr marked;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (const auto code = m.find_event(awaited, marked); code != cudaSuccess)
      return code;
    if (flags > cudaEventWaitExternal)
      return m.refuse(cudaErrorInvalidValue, "unknown flags");
    if (const auto code = m.check_usable(*found); code != cudaSuccess)
      return code;
    if (marked->captured)
      return wait_captured(m, found, *marked);
    if (!marked->recorded) {
      m.warn("the event was never recorded, so nothing waits");
      return cudaSuccess;
    }
    if (found->capturing) {
      found->capturing->invalidated = true;
      return m.refuse(cudaErrorStreamCaptureIsolation,
                      "a capture cannot wait for work outside of it");
    }
    auto made = std::make_shared<operation>();
    made->waits.push_back(marked->recorded);
    return m.enter(found, std::move(made));
  });
}

cudaError_t cudaEventQuery(cudaEvent_t queried) {
  return call("cudaEventQuery", needs::handle, [&](machine& m) {
    event_ptr marked;
    if (const auto code = m.find_event(queried, marked); code != cudaSuccess)
      return code;
    if (const auto code = check_queryable(m, *marked); code != cudaSuccess)
      return code;
    if (!marked->recorded) {
      m.warn("the event was never recorded, which counts as complete");
      return cudaSuccess;
    }
    if (!marked->recorded->done)
      return cudaErrorNotReady;
    marked->recorded->edge.acquire();
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t awaited) {
  return call("cudaEventSynchronize", needs::handle, [&](machine& m) {
    event_ptr marked;
    if (const auto code = m.find_event(awaited, marked); code != cudaSuccess)
      return code;
    if (const auto code = check_queryable(m, *marked); code != cudaSuccess)
      return code;
    if (!marked->recorded) {
      m.warn("the event was never recorded, so nothing waits");
      return cudaSuccess;
    }
    return m.wait_for({marked->recorded}, marked->device);
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start,
                                 cudaEvent_t end) {
  return call("cudaEventElapsedTime", needs::handle, [&](machine& m) {
    event_ptr first;
    event_ptr last;
    if (const auto code = m.find_event(start, first); code != cudaSuccess)
      return code;
    if (const auto code = m.find_event(end, last); code != cudaSuccess)
      return code;
    if (ms == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the time");
    if (!first->timed || !last->timed || first->device != last->device
        || !first->recorded || !last->recorded)
      return m.refuse(cudaErrorInvalidResourceHandle,
                      "an event without time, never recorded, or of another "
                      "device");
    if (!first->recorded->done || !last->recorded->done)
      return cudaErrorNotReady;
    // One thing completes per microsecond of the machine's clock.
    const auto ticks = static_cast<std::int64_t>(last->recorded->tick)
                     - static_cast<std::int64_t>(first->recorded->tick);
    *ms = static_cast<float>(ticks) / 1000.0F;
    return cudaSuccess;
  });
}
