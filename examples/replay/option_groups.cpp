// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/option_groups.hpp"

#include "examples/replay/option_tools.hpp"

#include <unistd.h>

namespace kvtide::replay {

namespace {

// -- words --------------------------------------------------------------------

constexpr word<rule_set> rule_words[] = {
  {rule_set::reference, "reference"},
  {rule_set::reference_committed, "reference_committed"},
  {rule_set::safe, "safe"},
};

constexpr word<eviction_policy> policy_words[] = {
  {eviction_policy::lru, "lru"},
  {eviction_policy::arc, "arc"},
};

constexpr word<device_kind> clock_words[] = {
  {device_kind::host_virtual, "virtual"},
  {device_kind::host, "real"},
};

constexpr word<device_choice> device_words[] = {
  {device_choice::host, "host"},
  {device_choice::cuda, "cuda"},
  {device_choice::automatic, "auto"},
};

constexpr word<copy_path> path_words[] = {
  {copy_path::automatic, "auto"},
  {copy_path::batch, "batch"},
  {copy_path::plain, "plain"},
  {copy_path::kernel, "kernel"},
};

constexpr word<fence_wait> fence_words[] = {
  {fence_wait::stream, "stream"},
  {fence_wait::host, "host"},
};

constexpr word<huge_page_use> page_words[] = {
  {huge_page_use::off, "off"},
  {huge_page_use::if_available, "if_available"},
  {huge_page_use::required, "required"},
};

constexpr word<plan_delivery> delivery_words[] = {
  {plan_delivery::direct, "direct"},
  {plan_delivery::by_engine, "by_engine"},
};

std::uint64_t machine_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES))
       * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

void add_file(CLI::App& app, const char* name, std::string& target,
              const char* text) {
  app.add_option(name, target, text)->type_name("FILE");
}

} // namespace

// -- groups -------------------------------------------------------------------

void add_shape(CLI::App& app, replay_options& opts) {
  auto& shape = opts.shape;
  add_number(app, "--layers", shape.layers, 1u, 1'024u, "Layers per group");
  add_number(app, "--kv-heads", shape.kv_heads, 1u, 1'024u,
             "KV heads per rank");
  add_number(app, "--head-size", shape.head_size, 1u, 4'096u,
             "Elements per head");
  add_number(app, "--dtype-bytes", shape.dtype_bytes, 1u, 8u,
             "Bytes per element");
  add_number(app, "--tokens-per-block", shape.tokens_per_block, 1u, 1'024u,
             "Tokens per block");
  add_number(app, "--sliding-window", shape.sliding_window, 0u, 1'000'000u,
             "Adds a group of layers with a window of so many tokens; 0 adds "
             "none");
  add_switch(app, "--packed", "--planes", shape.packed,
             "All layers of a block lie in one tensor",
             "Each layer's K and V are tensors of their own (default)");
  add_number(app, "--device-blocks", shape.device_blocks, 1u, 1u << 30,
             "Blocks of device memory per rank");
  app
    .add_option("--fingerprint", opts.fingerprint,
                "Names the model; content of another one is never found "
                "(default "
                  + opts.fingerprint + ")")
    ->type_name("TEXT");
}

void add_policy(CLI::App& app, replay_options& opts) {
  add_choice(app, "--policy", opts.policy, policy_words,
             "Eviction policy of the host pool");
}

void add_runtime(CLI::App& app, replay_options& opts, raw_sizes& raw) {
  add_choice(app, "--rules", opts.rules, rule_words, "Rule set");
  add_number(app, "--blocks-per-chunk", opts.blocks_per_chunk, 1u, 1'024u,
             "Blocks that are stored and loaded together");
  add_size(app, "--host-bytes", opts.host_bytes,
           "Host pool per rank, e.g. 2GiB; 0 turns offloading off (default "
           "64MiB)");
  add_choice(app, "--clock", opts.clock, clock_words,
             "Simulated copy times and the same output for the same options, "
             "or real ones");
  add_choice(app, "--delivery", opts.delivery, delivery_words,
             "How plans reach the ranks");
  add_number(app, "--copy-latency-us", opts.copy_latency_us, 0u, 10'000'000u,
             "Time added to each copy job, in microseconds; 0 with the real "
             "clock unless given");
  add_size(app, "--copy-bandwidth", raw.bandwidth,
           "Bytes per second, direction and rank, e.g. 2MiB; 0 means no limit "
           "(default 131072 tokens per second, or no limit with the real "
           "clock)");
}

void add_gpu(CLI::App& app, replay_options& opts, raw_sizes& raw) {
  auto& cuda = opts.cuda;
  add_choice(app, "--device", opts.device, device_words,
             "Where the KV memory lies: plain memory, a GPU, or a GPU if there "
             "is one; with a GPU time is real");
  add_number(app, "--device-index", opts.device_index, 0, 1'023,
             "The GPU that all ranks share, as CUDA counts them");
  add_choice(app, "--cuda-path", cuda.path, path_words,
             "How bytes travel to and from a GPU");
  add_size(app, "--cuda-kernel-below", raw.kernel_below,
           "Fragments of fewer bytes go by kernel (default as measured)");
  add_number(app, "--cuda-kernel-blocks", cuda.kernel_blocks, 1u, 1'024u,
             "Multiprocessors that the kernel takes from compute at most");
  add_number(app, "--cuda-streams", cuda.streams_per_direction, 1u, 16u,
             "Streams per direction");
  add_size(app, "--cuda-slice", cuda.slice_bytes,
           "Largest piece of work that is enqueued at once (default what the "
           "link moves in 1.5 ms)");
  add_size(app, "--cuda-in-flight", cuda.bytes_in_flight,
           "Bytes that may be enqueued per direction (default two pieces)");
  add_choice(app, "--cuda-fence", cuda.fences, fence_words,
             "What compute waits with: its stream, or the host");
  add_choice(app, "--huge-pages", cuda.huge_pages, page_words,
             "Whether the host pool of a GPU lies in huge pages");
  add_number(app, "--prefault-threads", cuda.prefault_threads, 0u, 256u,
             "Threads that touch the pages of a GPU's host pool; 0 means one "
             "per core, at most 8");
  app.add_flag_callback(
    "--no-numa", [&cuda] { cuda.numa_binding = false; },
    "Take a GPU's host pool from any NUMA node");
  app.add_flag_callback(
    "--allow-pageable", [&cuda] { cuda.allow_pageable = true; },
    "Go on with a host pool that the driver does not pin");
  app
    .add_option("--calibration", cuda.calibration_file,
                "File that keeps what was measured of a GPU for the next start")
    ->type_name("FILE");
}

void add_network(CLI::App& app, replay_options& opts) {
  auto& net = opts.network;
  app
    .add_option("--listen", net.listen,
                "Where the other side dials in; port 0 takes a free one")
    ->type_name("HOST:PORT");
  add_file(app, "--certificate", net.certificate,
           "This end's certificate (PEM); with it every connection is TLS");
  add_file(app, "--private-key", net.private_key, "Its key (PEM)");
  add_file(app, "--trusted", net.trusted,
           "Certificates that the other side has to show (PEM)");
  app.add_flag_callback(
    "--insecure", [&net] { net.insecure = true; },
    "Take an address that is not loopback without certificates: whoever "
    "reaches the port can read and write the cache's plans");
  app
    .add_option("--pool-name", opts.pool_name,
                "Keep the host pools in /dev/shm under this name, so that they "
                "outlive their process")
    ->type_name("NAME");
}

void add_detection(CLI::App& app, std::uint32_t& milliseconds) {
  add_number(app, "--detection-ms", milliseconds, 100u, 3'600'000u,
             "A peer that is silent for so long is gone, in milliseconds; the "
             "same on both sides");
}

// -- checks -------------------------------------------------------------------

std::string settle(const CLI::App& app, const raw_sizes& raw,
                   replay_options& opts) {
  // CLI11 refuses only options with a value that are given twice.
  for (const auto* option : app.get_options())
    if (option->count() > 1 && option->get_items_expected_max() <= 1)
      return option->get_name() + " is given more than once";
  if (app.count("--cuda-kernel-below") > 0)
    opts.cuda.kernel_below = raw.kernel_below;
  if (opts.device != device_choice::host && opts.simulated()
      && app.count("--clock") > 0)
    return "--clock virtual: only --device host knows simulated time";
  if (app.count("--copy-bandwidth") > 0)
    opts.copy_bandwidth = raw.bandwidth;
  else if (opts.clock == device_kind::host)
    opts.copy_bandwidth = 0;
  if (opts.clock == device_kind::host && app.count("--copy-latency-us") == 0)
    opts.copy_latency_us = 0;
  opts.network.detection = std::chrono::milliseconds{raw.detection_ms};
  return {};
}

// Doubles: the product may not fit into 64 bits.
std::string find_lack_of_memory(const replay_options& opts,
                                std::size_t ranks_here) {
  const auto limit = static_cast<double>(machine_bytes());
  const auto ranks = static_cast<double>(ranks_here);
  const auto mib = [](double bytes) {
    return std::to_string(static_cast<std::uint64_t>(bytes / 1048576.0))
         + " MiB";
  };
  const auto host = static_cast<double>(opts.host_bytes) * ranks;
  if (host > limit)
    return "--host-bytes: " + mib(host)
         + " for all ranks is more than the machine has (" + mib(limit) + ")";
  // A GPU says by itself what does not fit.
  if (opts.on_gpu())
    return {};
  const auto device = static_cast<double>(opts.shape.block_bytes())
                    * opts.shape.device_blocks * ranks;
  if (device + host > limit)
    return "--device-blocks: " + mib(device) + " beside " + mib(host)
         + " of host pool is more than the machine has (" + mib(limit) + ")";
  return {};
}

std::string find_contradiction(const replay_options& opts,
                               std::size_t ranks_here) {
  if (opts.cuda.bytes_in_flight != 0
      && opts.cuda.bytes_in_flight < opts.cuda.slice_bytes)
    return "--cuda-in-flight: one piece of --cuda-slice must fit into it";
  return find_lack_of_memory(opts, ranks_here);
}

const char* to_word(rule_set rules) noexcept {
  return find_word(rule_words, rules);
}

const char* to_word(eviction_policy policy) noexcept {
  return find_word(policy_words, policy);
}

const char* to_word(device_kind clock) noexcept {
  return find_word(clock_words, clock);
}

const char* to_word(device_choice device) noexcept {
  return find_word(device_words, device);
}

const char* to_word(plan_delivery delivery) noexcept {
  return find_word(delivery_words, delivery);
}

} // namespace kvtide::replay
