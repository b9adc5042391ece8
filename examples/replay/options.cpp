// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/options.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <string_view>
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

constexpr word<plan_delivery> delivery_words[] = {
  {plan_delivery::direct, "direct"},
  {plan_delivery::by_engine, "engine"},
};

template <class Enum, std::size_t N>
const char* find_word(const word<Enum> (&words)[N], Enum value) noexcept {
  for (const auto& known : words)
    if (known.value == value)
      return known.text;
  return "?";
}

// -- options ------------------------------------------------------------------

template <class T>
CLI::Option* add_number(CLI::App& app, const char* name, T& target, T low,
                        T high, const char* text) {
  return app.add_option(name, target, text)
    ->capture_default_str()
    ->check(CLI::Range(low, high));
}

template <class Enum, std::size_t N>
void add_choice(CLI::App& app, const char* name, Enum& target,
                const word<Enum> (&words)[N], const char* text) {
  auto names = std::vector<std::string>{};
  for (const auto& known : words)
    names.emplace_back(known.text);
  app
    .add_option_function<std::string>(
      name,
      [&target, &words](const std::string& value) {
        for (const auto& known : words)
          if (value == known.text)
            target = known.value;
      },
      text)
    ->default_str(find_word(words, target))
    ->check(CLI::IsMember(names));
}

// Accepts "64MiB"; all units are powers of 1,024.
CLI::Option* add_size(CLI::App& app, const char* name, std::uint64_t& target,
                      const char* shown, const char* text) {
  return app.add_option(name, target, text)
    ->transform(CLI::AsSizeValue(false))
    ->default_str(shown);
}

void add_all(CLI::App& app, replay_options& opts, std::uint64_t& bandwidth) {
  app
    .add_option("--trace", opts.trace,
                "Mooncake JSON lines or Azure CSV to replay")
    ->required(opts.trace.empty())
    ->capture_default_str();
  app.add_option("--rows", opts.rows, "First rows of the trace; 0 means all")
    ->capture_default_str();
  app.add_option("--seed", opts.seed, "Seed of everything that is random")
    ->capture_default_str();
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
             "Adds a group of layers with a window of so many tokens; 0 means "
             "none");
  app.add_flag("--packed,!--planes", shape.packed,
               "All layers of a block in one tensor; --planes (default): a "
               "tensor for each layer's K and V");
  add_number(app, "--device-blocks", shape.device_blocks, 1u, 1u << 30,
             "Blocks of device memory per rank");
  add_number(app, "--ranks", opts.ranks, 1u, 64u, "Tensor-parallel ranks");
  add_number(app, "--token-budget", opts.token_budget, 1u, 10'000'000u,
             "Tokens that a step computes at most");
  add_number(app, "--max-running", opts.max_running, 1u, 100'000u,
             "Requests that run or load at the same time");
  add_number(app, "--step-ms", opts.step_ms, 1u, 60'000u,
             "Compute time of a step, simulated milliseconds");
  app.add_flag("--async,!--sync", opts.async,
               "Plan a step while the one before computes (default); --sync: "
               "plan it after");
  add_number(app, "--abort-rate", opts.abort_rate, 0.0, 1.0,
             "Share of requests that are aborted, in any state");
  add_number(app, "--quick-reuse", opts.quick_reuse, 0.0, 1.0,
             "Share of requests whose blocks are reused right after they end; "
             "the others' blocks stay cached, least recently used first out");
  add_number(app, "--revisit-rate", opts.revisit_rate, 0.0, 1.0,
             "Share of those whose text, output included, is asked for again "
             "later; not part of the hit rate");
  add_choice(app, "--rules", opts.rules, rule_words, "Rule set");
  add_choice(app, "--policy", opts.policy, policy_words,
             "Eviction policy of the host pool");
  add_number(app, "--blocks-per-chunk", opts.blocks_per_chunk, 1u, 1'024u,
             "Blocks that are stored and loaded together");
  add_size(app, "--host-bytes", opts.host_bytes, "64MiB",
           "Host pool per rank, e.g. 2GiB; 0 turns offloading off");
  add_choice(app, "--clock", opts.clock, clock_words,
             "virtual: simulated copy times, the same output for the same "
             "options; real: real ones");
  add_choice(app, "--delivery", opts.delivery, delivery_words,
             "How plans reach the ranks");
  add_number(app, "--copy-latency-us", opts.copy_latency_us, 0u, 10'000'000u,
             "Added to each copy job, microseconds");
  add_size(app, "--copy-bandwidth", bandwidth, "131072 tokens per second",
           "Bytes per second, direction and rank, e.g. 2MiB; 0 means no limit");
  app.add_option("--json", opts.json,
                 "Write the report as JSON to this file, or - for stdout");
  app.add_flag("!--no-progress", opts.progress,
               "No progress bar on the terminal");
}

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
  const auto host = static_cast<double>(opts.host_bytes) * ranks;
  if (host > limit)
    return "--host-bytes: " + mib(host)
         + " for all ranks is more than the machine has (" + mib(limit) + ")";
  const auto device = static_cast<double>(opts.shape.block_bytes())
                    * opts.shape.device_blocks * ranks;
  if (device + host > limit)
    return "--device-blocks: " + mib(device) + " beside " + mib(host)
         + " of host pool is more than the machine has (" + mib(limit) + ")";
  return {};
}

} // namespace

std::variant<replay_options, early_exit>
parse_options(int argc, const char* const* argv) {
  auto opts = replay_options{};
#ifdef KVTIDE_REPLAY_SAMPLE
  opts.trace = KVTIDE_REPLAY_SAMPLE;
#endif
  auto bandwidth = std::uint64_t{0};
  auto app = CLI::App{"Replays a request trace against kvtide with a model of "
                      "a serving engine, and checks every byte that comes "
                      "back.",
                      "kvtide-replay"};
  // A flag given twice is a mistake, as it is for an option with a value.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_all(app, opts, bandwidth);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return early_exit{0, app.help()};
  } catch (const CLI::ParseError& failure) {
    auto text = std::string{failure.what()};
    for (auto& letter : text)
      if (letter == '\n')
        letter = ' ';
    return early_exit{2, "kvtide-replay: " + text + " (see --help)"};
  }
  if (app.count("--copy-bandwidth") > 0)
    opts.copy_bandwidth = bandwidth;
  if (const auto text = find_contradiction(opts); !text.empty())
    return early_exit{2, "kvtide-replay: " + text};
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

const char* to_word(plan_delivery delivery) noexcept {
  return find_word(delivery_words, delivery);
}

} // namespace kvtide::replay
