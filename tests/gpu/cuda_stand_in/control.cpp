// SPDX-License-Identifier: Apache-2.0

/// @file
/// The functions of `stand_in.hpp`.

#include "tests/gpu/cuda_stand_in/machine.hpp"

#include <sstream>

namespace kvtide::stand_in {
namespace {

const char* name_of(memory_kind kind) {
  switch (kind) {
    case memory_kind::device:
      return "device memory";
    case memory_kind::allocated_host:
      return "pinned host memory";
    case memory_kind::registered_host:
      return "registration";
  }
  return "";
}

std::string describe(const char* what, int device, const void* name) {
  std::ostringstream out;
  out << what << ' ' << name << " of device " << device;
  return out.str();
}

const void* pointer_to(object_id named) {
  return reinterpret_cast<const void*>(named);
}

/// A range as the program knows it, by where its bytes lie.
memory_range on_host(const machine& m, const memory_range& range) {
  const auto at = m.find(range.address, range.bytes);
  return at.owner ? memory_range{at.host, range.bytes} : range;
}

/// Where a device address lies. Host addresses are none, unless devices use the
/// same ones. @param device that uses it; -1: any
place find_for_device(const machine& m, const memory_range& range, int device) {
  const auto at = m.find(range.address, range.bytes);
  if (!at.owner)
    return {};
  if (at.owner->address + (at.host - at.owner->host) != range.address)
    return {};
  if (device >= 0 && at.owner->kind == memory_kind::device
      && at.owner->device != device)
    return {};
  return at;
}

} // namespace

void start(const settings& wanted) {
  machine::replace(wanted);
}

std::vector<std::string> leaks() {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  std::vector<std::string> found;
  const auto note = [&](const char* what, int device, const void* name) {
    if (m.context_of(device) == cudaSuccess)
      found.push_back(describe(what, device, name));
  };
  for (const auto& [id, x] : m.live_streams)
    note("stream", x->device, pointer_to(id));
  for (const auto& [id, x] : m.live_events)
    note("event", x->device, pointer_to(id));
  for (const auto& [address, x] : m.by_address)
    note(name_of(x->kind), x->device, x->address);
  for (const auto id : m.live_graphs)
    note("graph", 0, pointer_to(id));
  return found;
}

std::vector<std::string> refusals() {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  return m.refusals;
}

std::vector<std::string> warnings() {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  return m.warnings;
}

std::size_t runnable() {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  return m.all_that_can_run().size();
}

void run(std::size_t index) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  m.run_piece(m.all_that_can_run().at(index));
}

void run_all() {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  for (auto found = m.all_that_can_run(); !found.empty();
       found = m.all_that_can_run())
    m.run_piece(found[m.draw(found.size())]);
}

std::size_t pending() {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  std::size_t count = 0;
  for (const auto& x : m.streams)
    count += x->queue.size();
  return count;
}

// CUDA programming guide, multi-device system: a launch fails if its stream is
// not of the current device.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> first_half,
                    std::function<void()> second_half,
                    std::vector<memory_range> touches) {
  return call("kernel", needs::handle, [&](machine& m) {
    stream_ptr found;
    if (const auto code = m.find_stream(stream, found); code != cudaSuccess)
      return code;
    if (found->device != m.me().device)
      return m.refuse(cudaErrorInvalidResourceHandle,
                      "the stream's device is not the current one");
    auto made = std::make_shared<operation>();
    for (auto* half : {&first_half, &second_half})
      if (*half)
        made->pieces.push_back(std::move(*half));
    for (const auto& range : touches) {
      const auto at = find_for_device(m, range, found->device);
      if (!at.owner) {
        m.refuse(cudaErrorIllegalAddress, "touches what no device can reach");
        made->breaks_context = cudaErrorIllegalAddress;
        made->pieces.clear();
        continue;
      }
      made->touches.push_back({at.host, range.bytes});
      made->regions.push_back(at.owner);
    }
    return m.enter(found, std::move(made));
  });
}

void* device_view(const void* address, std::size_t bytes) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  return find_for_device(m, {address, bytes}, -1).host;
}

std::uint64_t calls(std::string_view function) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  const auto found = m.calls.find(function);
  return found != m.calls.end() ? found->second : 0;
}

void fail_call(std::string_view function, std::uint32_t nth, cudaError_t code,
               bool sticky) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  m.call_faults.push_back({std::string{function}, nth, code, sticky});
}

void hang(memory_range range) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  m.hanging.push_back(on_host(m, range));
}

void release_hanging() {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  m.hanging.clear();
  m.choose();
}

void release_hanging(memory_range range) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  const auto released = on_host(m, range);
  std::erase_if(m.hanging, [&released](const memory_range& x) {
    return x.address == released.address && x.bytes == released.bytes;
  });
  m.choose();
}

void fail_when_run(memory_range range, cudaError_t code) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  m.run_faults.push_back({on_host(m, range), code});
}

void lose_context(int device, cudaError_t code) {
  auto& m = machine::current();
  const std::lock_guard lock{m.mutex};
  m.lose(device, code);
}

} // namespace kvtide::stand_in
