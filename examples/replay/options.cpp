// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>
#include <unistd.h>

namespace kvtide::replay {

namespace {

// -- words --------------------------------------------------------------------

template <class Enum>
struct word {
  Enum value;
  const char* text;
};

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

template <class Enum, std::size_t N>
const char* find_word(const word<Enum> (&words)[N], Enum value) noexcept {
  for (const auto& known : words)
    if (known.value == value)
      return known.text;
  return "?";
}

// -- options ------------------------------------------------------------------

// Accepts numbers from `low` to `high`. CLI11 alone would take "-1" for a large
// number, and "nan" for one in any range.
template <class T>
void add_number(CLI::App& app, const char* name, T& target, T low, T high,
                const std::string& text) {
  const auto to_text = [](T value) {
    auto out = std::ostringstream{};
    out << value;
    return out.str();
  };
  const auto range = to_text(low) + " to " + to_text(high);
  const auto any = high == std::numeric_limits<T>::max();
  const auto check = [low, high, range](const std::string& given) {
    auto value = T{};
    const auto* end = given.data() + given.size();
    const auto parsed = std::from_chars(given.data(), end, value);
    const auto good = parsed.ec == std::errc{} && parsed.ptr == end
                   && value >= low && value <= high;
    return good ? std::string{} : given + " is not a number from " + range;
  };
  app
    .add_option(name, target,
                text + " (" + (any ? "" : range + ", ") + "default "
                  + to_text(target) + ")")
    ->type_name("N")
    ->check(CLI::Validator{check, ""});
}

template <class Enum, std::size_t N>
void add_choice(CLI::App& app, const char* name, Enum& target,
                const word<Enum> (&words)[N], const std::string& text) {
  auto names = std::string{};
  for (const auto& known : words)
    names += (names.empty() ? "" : ", ") + std::string{known.text};
  const auto check = [&words, names](const std::string& given) {
    for (const auto& known : words)
      if (given == known.text)
        return std::string{};
    return given + " is none of " + names;
  };
  const auto set = [&target, &words](const std::string& given) {
    for (const auto& known : words)
      if (given == known.text)
        target = known.value;
  };
  app
    .add_option_function<std::string>(name, set,
                                      text + " (" + names + "; default "
                                        + find_word(words, target) + ")")
    ->type_name("WORD")
    ->check(CLI::Validator{check, ""});
}

// Accepts "64MiB"; all units are powers of 1,024.
void add_size(CLI::App& app, const char* name, std::uint64_t& target,
              const char* text) {
  // What the library takes for a number of bytes wraps below zero, and a unit
  // alone counts as one.
  const auto starts_with_digit = [](const std::string& given) {
    const auto ok = !given.empty() && given[0] >= '0' && given[0] <= '9';
    return ok ? std::string{}
              : given + " is not a number of bytes such as 64MiB";
  };
  app.add_option(name, target, text)
    ->transform(CLI::AsSizeValue(false).description(""))
    ->transform(CLI::Validator{starts_with_digit, ""}) // Runs first.
    ->type_name("SIZE");
}

// Two flags for the two values of one setting.
void add_switch(CLI::App& app, const char* on, const char* off, bool& target,
                const char* on_text, const char* off_text) {
  auto* const first = app.add_flag_callback(
    on, [&target] { target = true; }, on_text);
  app
    .add_flag_callback(
      off, [&target] { target = false; }, off_text)
    ->excludes(first);
}

void add_model(CLI::App& app, replay_options& opts) {
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
  add_number(app, "--ranks", opts.ranks, 1u, 64u, "Tensor-parallel ranks");
  add_number(app, "--token-budget", opts.token_budget, 1u, 10'000'000u,
             "Tokens that a step computes at most");
  add_number(app, "--max-running", opts.max_running, 1u, 100'000u,
             "Requests that run or load at the same time");
  add_number(app, "--step-ms", opts.step_ms, 1u, 60'000u,
             "Compute time of a step in simulated milliseconds");
  add_switch(app, "--async", "--sync", opts.async,
             "Plan a step while the one before computes (default)",
             "Plan a step when the one before is over");
}

void add_trouble(CLI::App& app, replay_options& opts) {
  add_number(app, "--abort-rate", opts.abort_rate, 0.0, 1.0,
             "Share of requests that are aborted; larger among the few that "
             "load, are deferred or are preempted");
  add_number(app, "--quick-reuse", opts.quick_reuse, 0.0, 1.0,
             "Share of requests whose blocks are reused right after they end; "
             "blocks of the others stay cached until no older ones are left");
  add_number(app, "--revisit-rate", opts.revisit_rate, 0.0, 1.0,
             "Share of those, if finished, whose text with its output is asked "
             "for again; these requests do not count in the hit rate");
}

void add_runtime(CLI::App& app, replay_options& opts,
                 std::uint64_t& bandwidth) {
  add_choice(app, "--rules", opts.rules, rule_words, "Rule set");
  add_choice(app, "--policy", opts.policy, policy_words,
             "Eviction policy of the host pool");
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
  add_size(app, "--copy-bandwidth", bandwidth,
           "Bytes per second, direction and rank, e.g. 2MiB; 0 means no limit "
           "(default 131072 tokens per second, or no limit with the real "
           "clock)");
}

void add_gpu(CLI::App& app, replay_options& opts, std::uint64_t& kernel_below) {
  auto& cuda = opts.cuda;
  add_choice(app, "--device", opts.device, device_words,
             "Where the KV memory lies: plain memory, a GPU, or a GPU if there "
             "is one; with a GPU time is real");
  add_number(app, "--device-index", opts.device_index, 0, 1'023,
             "The GPU that all ranks share, as CUDA counts them");
  add_choice(app, "--cuda-path", cuda.path, path_words,
             "How bytes travel to and from a GPU");
  add_size(app, "--cuda-kernel-below", kernel_below,
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

void add_all(CLI::App& app, replay_options& opts, std::uint64_t& bandwidth,
             std::uint64_t& kernel_below) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  app
    .add_option("--trace", opts.trace,
                "Mooncake JSON lines or Azure CSV to replay")
    ->required(opts.trace.empty())
    ->type_name("FILE");
  add_number(app, "--rows", opts.rows, std::uint64_t{0}, any,
             "First rows of the trace to replay; 0 means all");
  add_number(app, "--seed", opts.seed, std::uint64_t{0}, any,
             "Seed of everything that is random");
  add_model(app, opts);
  add_trouble(app, opts);
  add_runtime(app, opts, bandwidth);
  add_gpu(app, opts, kernel_below);
  app
    .add_option("--json", opts.json,
                "Write the report as JSON to this file, or with - to standard "
                "output instead of the text")
    ->type_name("FILE");
  app.add_flag_callback(
    "--no-progress", [&opts] { opts.progress = false; },
    "No progress bar on the terminal");
}

// What the report's lines about wall time count, and how it ends.
constexpr auto about_report
  = R"(In the report, the runtime's share is the part of the wall time that the
engine's thread spent
  in calls of the runtime, each until its answer, if it has one (calls),
  in looking for notices, and asking for cache events and counters (news),
  and in waiting while the model had nothing else to do (waits): with the real
  clock for a notice, with the simulated one until time had moved and all
  copies due by then were made.
The rest is the model: it plans, and fills and compares bytes. With the
simulated clock the waits hold the copies, which a device makes beside compute;
calls and news mean the same with both clocks.
The copies' bytes per second count the wall time of copying alone, on average of
all streams: neither the time between jobs, nor latency and bandwidth as
configured, but the kernel's time for pages of the pool that nobody used before.
So they mean the same with both clocks. Beside them stands what one thread
reaches with memcpy and fragments of the same size and order, in memory that was
used before, right before and after the replay.

Exits with 0 if all is well, 1 if bytes were wrong, something was left over or
the runtime failed, 2 if the arguments or the trace cannot be used, there is no
GPU that was asked for, or the report cannot be written, 130 if it was
interrupted.)";

// -- checks across options ----------------------------------------------------

std::uint64_t machine_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES))
       * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

// Doubles: the product may not fit into 64 bits.
std::string find_contradiction(const replay_options& opts) {
  const auto limit = static_cast<double>(machine_bytes());
  const auto ranks = static_cast<double>(opts.ranks);
  const auto mib = [](double bytes) {
    return std::to_string(static_cast<std::uint64_t>(bytes / 1048576.0))
         + " MiB";
  };
  if (opts.cuda.bytes_in_flight != 0
      && opts.cuda.bytes_in_flight < opts.cuda.slice_bytes)
    return "--cuda-in-flight: one piece of --cuda-slice must fit into it";
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

// One line, also for words on the command line that have several.
early_exit misused(std::string what) {
  std::replace(what.begin(), what.end(), '\n', ' ');
  return {2, "kvtide-replay: " + what + "; see --help"};
}

} // namespace

std::variant<replay_options, early_exit>
parse_options(int argc, const char* const* argv) {
  auto opts = replay_options{};
#ifdef KVTIDE_REPLAY_SAMPLE
  opts.trace = KVTIDE_REPLAY_SAMPLE;
#endif
  auto bandwidth = std::uint64_t{0};
  auto kernel_below = std::uint64_t{0};
  auto app = CLI::App{"Replays a request trace against kvtide with a model of "
                      "a serving engine, and checks every byte that comes "
                      "back.",
                      "kvtide-replay"};
  add_all(app, opts, bandwidth, kernel_below);
  app.footer(about_report);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return early_exit{0, app.help()};
  } catch (const CLI::ParseError& failure) {
    return misused(failure.what());
  }
  // CLI11 refuses only options with a value that are given twice.
  for (const auto* option : app.get_options())
    if (option->count() > 1)
      return misused(option->get_name() + " is given more than once");
  if (app.count("--cuda-kernel-below") > 0)
    opts.cuda.kernel_below = kernel_below;
  if (opts.device != device_choice::host && opts.simulated()
      && app.count("--clock") > 0)
    return misused("--clock virtual: only --device host knows simulated time");
  if (app.count("--copy-bandwidth") > 0)
    opts.copy_bandwidth = bandwidth;
  else if (opts.clock == device_kind::host)
    opts.copy_bandwidth = 0;
  if (opts.clock == device_kind::host && app.count("--copy-latency-us") == 0)
    opts.copy_latency_us = 0;
  if (const auto text = find_contradiction(opts); !text.empty())
    return misused(text);
  return opts;
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
