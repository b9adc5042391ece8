// SPDX-License-Identifier: Apache-2.0

#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <algorithm>

namespace kvtide::stand_in {
namespace {

constexpr int least_priority = 0;
constexpr int greatest_priority = -5;

object_id number(cudaStream_t searched) {
  return reinterpret_cast<object_id>(searched);
}

/// The ends that a stream's own end means: the legacy stream speaks for the
/// blocking streams of its device.
std::vector<completion_ptr> ends_of(const machine& m, const stream& asked) {
  std::vector<completion_ptr> ends;
  for (const auto& x : m.streams)
    if (x->tail
        && (x.get() == &asked
            || (asked.legacy && x->blocking && x->device == asked.device)))
      ends.push_back(x->tail);
  return ends;
}

} // namespace

cudaError_t machine::find_stream(cudaStream_t searched, stream_ptr& found) {
  if (searched == nullptr || searched == cudaStreamLegacy) {
    found = legacy_streams[static_cast<std::size_t>(me().device)];
  } else if (searched == cudaStreamPerThread) {
    return refuse(cudaErrorNotSupported,
                  "the stand-in has no default stream per thread");
  } else {
    const auto live = live_streams.find(number(searched));
    if (live == live_streams.end())
      return refuse(cudaErrorInvalidResourceHandle,
                    "a stream that was destroyed or never made");
    found = live->second;
  }
  return context_of(found->device);
}

} // namespace kvtide::stand_in

using namespace kvtide::stand_in;

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority,
                                             int* greatestPriority) {
  return call("cudaDeviceGetStreamPriorityRange", needs::context,
              [&](machine&) {
                if (leastPriority != nullptr)
                  *leastPriority = least_priority;
                if (greatestPriority != nullptr)
                  *greatestPriority = greatest_priority;
                return cudaSuccess;
              });
}

// CUDA Runtime API, cudaStreamCreateWithPriority: a priority outside of the
// range is clamped. It is a hint for kernels, and copies do not hear of it, so
// the stand-in forgets it.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream,
                                         unsigned int flags, int) {
  return call("cudaStreamCreateWithPriority", needs::context, [&](machine& m) {
    if (pStream == nullptr || flags > cudaStreamNonBlocking)
      return m.refuse(cudaErrorInvalidValue, "no pointer, or unknown flags");
    auto made = std::make_shared<stream>();
    made->id = m.new_handle();
    made->device = m.me().device;
    made->legacy = false;
    made->blocking = flags == cudaStreamDefault;
    m.live_streams[made->id] = made;
    m.streams.push_back(made);
    *pStream = reinterpret_cast<cudaStream_t>(made->id);
    return cudaSuccess;
  });
}

// CUDA Runtime API, cudaStreamDestroy: returns at once; what the stream still
// has to do is done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (found->legacy)
      return m.refuse(cudaErrorInvalidResourceHandle,
                      "the default stream cannot be destroyed");
    if (found->capturing)
      return m.refuse(cudaErrorIllegalState, "the stream is capturing");
    found->destroyed = true;
    found->wake.notify_all();
    m.live_streams.erase(found->id);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (const auto code = m.check_queryable(*found); code != cudaSuccess)
      return code;
    const auto ends = ends_of(m, *found);
    if (!std::all_of(ends.begin(), ends.end(),
                     [](const auto& end) { return end->done; }))
      return cudaErrorNotReady;
    for (const auto& end : ends)
      end->edge.acquire();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (const auto code = m.check_queryable(*found); code != cudaSuccess)
      return code;
    return m.wait_for(ends_of(m, *found), found->device);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", needs::context, [&](machine& m) {
    const auto device = m.me().device;
    std::vector<completion_ptr> ends;
    for (const auto& x : m.streams) {
      if (x->device != device)
        continue;
      if (const auto code = m.check_queryable(*x); code != cudaSuccess)
        return code;
      if (x->tail)
        ends.push_back(x->tail);
    }
    return m.wait_for(ends, device);
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int* device) {
  return call("cudaStreamGetDevice", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(hStream, found); code != cudaSuccess)
      return code;
    if (device == nullptr)
      return m.refuse(cudaErrorInvalidValue, "nowhere to put the device");
    *device = found->device;
    return cudaSuccess;
  });
}

// CUDA Runtime API, cudaLaunchHostFunc: called after the work before it, holds
// up the work behind it, says nothing about errors, and is not called after
// one.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn,
                               void* userData) {
  return call("cudaLaunchHostFunc", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (fn == nullptr)
      return m.refuse(cudaErrorInvalidValue, "no function");
    auto made = std::make_shared<operation>();
    made->host_function = true;
    made->host_data = userData;
    made->pieces.emplace_back([fn, userData] { fn(userData); });
    return m.enter(found, std::move(made));
  });
}
