// SPDX-License-Identifier: Apache-2.0

/// @file
/// Stream capture: work that enters a capturing stream is written down and does
/// not run, and calls that the capture would not see are prohibited. Graphs are
/// only names here; nothing launches them.

#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <algorithm>
#include <thread>

namespace kvtide::stand_in {

// CUDA Runtime API, cudaThreadExchangeStreamCaptureMode: a thread in global
// mode must not make potentially unsafe calls while any thread captures in
// global mode; in thread-local mode only its own captures count; in relaxed
// mode none.
cudaError_t machine::check_unsafe() {
  const auto& state = me();
  if (state.mode == cudaStreamCaptureModeRelaxed)
    return cudaSuccess;
  bool prohibited = false;
  for (const auto& x : captures) {
    if (!x->active || x->mode == cudaStreamCaptureModeRelaxed)
      continue;
    const bool own = x->thread == std::this_thread::get_id();
    const bool global = state.mode == cudaStreamCaptureModeGlobal
                     && x->mode == cudaStreamCaptureModeGlobal;
    if (own || global) {
      x->invalidated = true;
      prohibited = true;
    }
  }
  if (!prohibited)
    return cudaSuccess;
  return refuse(cudaErrorStreamCaptureUnsupported,
                "unsafe while a stream captures, unless the thread's capture "
                "mode is relaxed");
}

cudaError_t machine::check_usable(const stream& asked) {
  if (asked.capturing && asked.capturing->invalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (!asked.legacy)
    return cudaSuccess;
  // CUDA Runtime API, cudaStreamIsCapturing: while a blocking stream captures,
  // the legacy stream of its device cannot be used.
  bool implied = false;
  for (const auto& x : streams)
    if (x->blocking && x->device == asked.device && x->capturing) {
      x->capturing->invalidated = true;
      implied = true;
    }
  if (!implied)
    return cudaSuccess;
  return refuse(cudaErrorStreamCaptureImplicit,
                "the legacy stream would wait for a stream that captures");
}

cudaError_t machine::check_queryable(const stream& asked) {
  if (asked.capturing) {
    asked.capturing->invalidated = true;
    return refuse(cudaErrorStreamCaptureUnsupported,
                  "a capturing stream is never done");
  }
  if (const auto code = check_usable(asked); code != cudaSuccess)
    return code;
  return check_unsafe();
}

void machine::capture_work(stream& entered) {
  auto& length = entered.capturing->lengths[entered.id];
  entered.before[entered.id] = ++length;
}

namespace {

/// All that was captured lies before what `origin` would capture next.
bool all_joined(const capture& ended, const stream& origin) {
  return std::all_of(
    ended.lengths.begin(), ended.lengths.end(), [&](const auto& x) {
      const auto joined = origin.before.find(x.first);
      return joined != origin.before.end() && joined->second == x.second;
    });
}

} // namespace
} // namespace kvtide::stand_in

using namespace kvtide::stand_in;

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", needs::nothing,
              [&](machine& m) {
                if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal
                    || *mode > cudaStreamCaptureModeRelaxed)
                  return m.refuse(cudaErrorInvalidValue, "not a mode");
                std::swap(m.me().mode, *mode);
                return cudaSuccess;
              });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus* pCaptureStatus) {
  return call("cudaStreamIsCapturing", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (pCaptureStatus == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the status");
    // The one use of the legacy stream that leaves a capture valid.
    if (found->legacy)
      for (const auto& x : m.streams)
        if (x->blocking && x->device == found->device && x->capturing)
          return cudaErrorStreamCaptureImplicit;
    *pCaptureStatus = !found->capturing ? cudaStreamCaptureStatusNone
                    : found->capturing->invalidated
                      ? cudaStreamCaptureStatusInvalidated
                      : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (mode < cudaStreamCaptureModeGlobal
        || mode > cudaStreamCaptureModeRelaxed)
      return m.refuse(cudaErrorInvalidValue, "not a mode");
    if (found->legacy)
      return m.refuse(cudaErrorStreamCaptureUnsupported,
                      "the legacy stream cannot be captured");
    if (found->capturing)
      return m.refuse(cudaErrorIllegalState, "the stream captures already");
    auto made = std::make_shared<capture>();
    made->origin = found->id;
    made->mode = mode;
    made->thread = std::this_thread::get_id();
    found->capturing = made;
    found->before.clear();
    m.captures.push_back(std::move(made));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  return call("cudaStreamEndCapture", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (pGraph == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the graph");
    *pGraph = nullptr;
    const auto ended = found->capturing;
    if (!ended)
      return m.refuse(cudaErrorIllegalState, "the stream does not capture");
    if (ended->origin != found->id) {
      ended->invalidated = true;
      return m.refuse(cudaErrorStreamCaptureUnmatched,
                      "the capture began on another stream");
    }
    if (ended->mode != cudaStreamCaptureModeRelaxed
        && ended->thread != std::this_thread::get_id())
      return m.refuse(cudaErrorStreamCaptureWrongThread,
                      "the capture began on another thread");
    const bool joined = all_joined(*ended, *found);
    ended->active = false;
    for (const auto& x : m.streams)
      if (x->capturing == ended)
        x->capturing = nullptr;
    std::erase(m.captures, ended);
    if (ended->invalidated)
      return cudaErrorStreamCaptureInvalidated;
    if (!joined)
      return m.refuse(cudaErrorStreamCaptureUnjoined,
                      "a stream that joined the capture was not joined again");
    const auto id = m.new_handle();
    m.live_graphs.insert(id);
    *pGraph = reinterpret_cast<cudaGraph_t>(id);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", needs::nothing, [&](machine& m) {
    if (m.live_graphs.erase(reinterpret_cast<object_id>(graph)) == 0)
      return m.refuse(cudaErrorInvalidValue,
                      "a graph that was destroyed or never made");
    return cudaSuccess;
  });
}
