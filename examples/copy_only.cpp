// SPDX-License-Identifier: Apache-2.0

/// @file
/// The copies alone, without the rest of the library: some blocks are computed,
/// stored, overwritten and loaded again, and every byte is compared.
///
///   copy-only           on the first GPU, or on the host if there is none
///   copy-only 1         on GPU 1
///   copy-only host      on the host

#include "kvtide/gpu.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace {

namespace gpu = kvtide::gpu;

constexpr std::uint32_t blocks_per_chunk = 4;
constexpr std::uint32_t blocks = 1 + 2 * blocks_per_chunk; // Block 0 is a hole.
constexpr std::uint64_t block_bytes = 16 << 10;

/// Ends the program with the sentence that an error brings.
void check(const kvtide::error& failure) {
  if (failure.code == kvtide::ec::none)
    return;
  std::fprintf(stderr, "%s: %s\n", kvtide::to_string(failure.code),
               failure.text.c_str());
  std::exit(1);
}

template <class T>
T check(kvtide::result<T> made) {
  if (!made)
    check(made.failure());
  return std::move(made).value();
}

int chosen_device(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "host") == 0)
    return gpu::host_device;
  if (argc > 1) {
    auto device = 0;
    const auto* end = argv[1] + std::strlen(argv[1]);
    if (const auto read = std::from_chars(argv[1], end, device);
        read.ec == std::errc{} && read.ptr == end && device >= 0 && argc == 2)
      return device;
    std::fprintf(stderr, "usage: copy-only [host | number of a GPU]\n");
    std::exit(2);
  }
  const auto count = gpu::device_count();
  if (!count)
    std::printf("%s\n", count.failure().text.c_str());
  return count ? 0 : gpu::host_device;
}

/// Two chunks: blocks 1 to 4 in slot 0, blocks 5 to 8 in slot 1.
kvtide::job make_job(kvtide::job_id id, kvtide::job_kind kind) {
  std::vector<kvtide::job_row> rows(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    rows[i].slot = i;
    for (std::uint32_t j = 0; j < blocks_per_chunk; ++j)
      rows[i].blocks.push_back(1 + i * blocks_per_chunk + j);
  }
  return {id, kind, 0, std::move(rows)};
}

/// Looks at what has ended; a job that failed ends the program.
gpu::copier_news look(gpu::copier& copier) {
  auto news = copier.poll();
  for (const auto& ended : news.jobs) {
    if (ended.status == kvtide::job_status::failed)
      check({kvtide::ec::device_failure, ended.text});
    std::printf("job %u: %u bytes\n", static_cast<unsigned>(ended.job),
                static_cast<unsigned>(ended.bytes));
  }
  return news;
}

/// Holds back what is enqueued next until a job has ended: a GPU's stream
/// waits by itself, compute of the host starts once the step is named.
void hold_compute(gpu::compute_stream& stream, gpu::copier& copier,
                  kvtide::step_id step, kvtide::job_id job) {
  const auto fence = copier.make_fence(step, {job});
  if (fence)
    return check(stream.wait(*fence));
  while (look(copier).fences.empty())
    (void)copier.wait(std::chrono::seconds{1});
}

} // namespace

int main(int argc, char** argv) {
  const auto device = chosen_device(argc, argv);
  auto memory
    = check(gpu::device_memory::allocate(device, blocks * block_bytes));
  auto stream = check(gpu::compute_stream::make(device));

  // What lies where: one tensor, one layer, one group.
  auto kv = kvtide::kv_memory{};
  kv.device = device;
  kv.tensors = {{memory.data(), memory.bytes(), memory.kind(), blocks,
                 block_bytes, block_bytes}};
  kv.references = {{0, 0, 0, 0, block_bytes}};
  kv.streams = {stream.handle()};

  auto opts = gpu::copier_options{};
  opts.device = device;
  opts.blocks_per_chunk = blocks_per_chunk;
  opts.host_bytes = 1 << 20;
  auto copier = check(gpu::copier::start(std::move(opts)));
  const auto pool = check(copier.register_kv(kv));
  for (const auto& note : pool.notes)
    std::printf("%s\n", note.c_str());

  // "Compute" writes the blocks; the store starts behind it.
  std::vector<std::uint32_t> written(memory.bytes() / sizeof(std::uint32_t));
  for (std::size_t i = 0; i < written.size(); ++i)
    written[i] = static_cast<std::uint32_t>(i * 2'654'435'761u);
  check(stream.copy_to_device(memory.data(), written.data(), memory.bytes()));
  const auto computed = check(copier.record(stream.handle()));
  check(copier.submit(make_job(0, kvtide::job_kind::store), {computed}));

  // Compute of step 1 overwrites them, so it waits for the store.
  hold_compute(stream, copier, 1, 0);
  const std::vector<std::byte> noise(memory.bytes(), std::byte{0xaa});
  check(stream.copy_to_device(memory.data(), noise.data(), memory.bytes()));

  // The load starts behind that, and compute of step 2 reads behind the load.
  const auto overwritten = check(copier.record(stream.handle()));
  check(copier.submit(make_job(1, kvtide::job_kind::load), {overwritten}));
  hold_compute(stream, copier, 2, 1);
  std::vector<std::uint32_t> read(written.size());
  check(stream.copy_to_host(read.data(), memory.data(), memory.bytes()));
  check(stream.synchronize());

  check(copier.unregister_kv());
  while (!look(copier).unregistered)
    (void)copier.wait(std::chrono::seconds{1});

  // All but block 0, which no job names.
  const auto skipped = block_bytes / sizeof(std::uint32_t);
  const auto same = std::equal(written.begin() + skipped, written.end(),
                               read.begin() + skipped);
  std::printf(same ? "every byte came back\n" : "wrong bytes came back\n");
  return same ? 0 : 1;
}
