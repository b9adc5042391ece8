// SPDX-License-Identifier: Apache-2.0

// How much of the prompts of a trace is found in the host pools of several
// replicas, depending on who decides where a prompt goes? Real runtimes, one
// per replica, a real directory, simulated time.
//
//   kvtide-route --trace FILE --policy directory

#include "kvtide/directory.hpp"

#include "examples/replay/mix.hpp"
#include "examples/replay/token_text.hpp"
#include "examples/replay/trace_reader.hpp"
#include "examples/route/replica.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace kvtide;
using namespace kvtide::route;

struct settings {
  std::string trace;
  std::size_t rows = 0;
  std::uint32_t replicas = 4;
  std::string policy = "directory";
  /// Prefix ids that `prefix` looks at.
  std::size_t depth = 2;
  /// The last replica joins with this prompt; zero: it is there from the start.
  std::size_t late_rows = 0;
  replica_shape shape;
};

constexpr const char* policies[]
  = {"one_pool",  "round_robin",    "prefix",
     "directory", "directory_load", "directory_worth"};

template <class T>
T get(result<T> answer) {
  if (!answer) {
    std::fprintf(stderr, "kvtide-route: %s\n", answer.failure().text.c_str());
    std::exit(1);
  }
  return std::move(answer).value();
}

/// Replicas, and whoever sends prompts to them.
class deployment {
public:
  explicit deployment(const settings& set) : set_(set), shape_(set.shape) {
    auto count = set.replicas;
    if (set.policy == "one_pool") {
      shape_.pool_tokens *= count;
      shape_.device_tokens *= count;
      shape_.step_tokens *= count;
      shape_.max_running *= count;
      count = 1;
    }
    asks_ = set.policy.rfind("directory", 0) == 0;
    if (asks_) {
      directory_.emplace(get(directory::start({})));
      auto opts = router_options{};
      opts.place.here = &*directory_;
      opts.shared = shape_.runtime_options();
      opts.timeout = std::chrono::seconds{10};
      if (set_.policy != "directory_worth")
        opts.least_share = 0;
      router_.emplace(get(router::start(opts)));
    }
    while (replicas_.size() < count - (set.late_rows > 0 && count > 1))
      add_replica();
  }

  /// Before prompts that arrive together are sent: what replicas did until now
  /// is known.
  void settle() {
    if (!asks_)
      return;
    for (const auto& one : replicas_)
      one->settle();
    // Each question goes through the actors that carry what changed; as many as
    // there are replicas leave the order of choices as it is.
    for (auto round = 0; round < 4; ++round)
      for (std::size_t i = 0; i < replicas_.size(); ++i)
        (void)router_->ask({});
  }

  void send(prompt what, const replay::trace_row& row) {
    if (set_.late_rows > 0 && ++sent_ == set_.late_rows)
      add_replica();
    const auto to = choose(what, row);
    replicas_[to]->take(std::move(what));
  }

  void step(nanoseconds_t now) {
    for (const auto& one : replicas_)
      if (!one->idle())
        one->step(now);
  }

  [[nodiscard]] bool idle() const {
    return std::all_of(replicas_.begin(), replicas_.end(),
                       [](const auto& one) { return one->idle(); });
  }

  [[nodiscard]] const std::vector<std::unique_ptr<replica>>&
  replicas() const noexcept {
    return replicas_;
  }

  [[nodiscard]] double ask_us() const {
    return asked_ == 0 ? 0
                       : static_cast<double>(asking_.count()) / 1e3
                           / static_cast<double>(asked_);
  }

private:
  void add_replica() {
    auto teller = std::shared_ptr<publisher>{};
    if (asks_)
      teller = get(make_publisher(
        {{&*directory_, {}, {}}, std::to_string(replicas_.size())}));
    replicas_.push_back(std::make_unique<replica>(shape_, std::move(teller)));
    while (asks_ && router_->ask({}).all.size() < replicas_.size())
      ; // Until it takes part.
  }

  std::size_t choose(prompt& what, const replay::trace_row& row) {
    if (replicas_.size() == 1)
      return 0;
    if (set_.policy == "prefix") {
      auto seed = std::uint64_t{0};
      for (std::size_t i = 0; i < std::min(set_.depth, row.prefix_ids.size());
           ++i)
        seed = replay::mix(seed, row.prefix_ids[i]);
      return seed % replicas_.size();
    }
    if (!asks_)
      return turn_++ % replicas_.size();
    const auto start = std::chrono::steady_clock::now();
    const auto answer = router_->ask(what.hashes);
    asking_ += std::chrono::steady_clock::now() - start;
    ++asked_;
    if (answer.reason.code != ec::none)
      (void)get(result<int>{answer.reason});
    auto best = answer.replica;
    if (set_.policy == "directory_load") {
      // Who would be done with it first, if all compute equally fast; of those
      // the one that has most.
      auto least = std::numeric_limits<token_count>::max();
      for (const auto& one : answer.all) {
        const auto work = replicas_[std::stoul(one.replica)]->load()
                        + what.tokens - one.tokens;
        if (work < least || (work == least && one.replica == answer.replica)) {
          least = work;
          best = one.replica;
        }
      }
    }
    for (const auto& one : answer.all)
      if (one.replica == best)
        what.promised = one.tokens;
    return std::stoul(best);
  }

  const settings& set_;
  replica_shape shape_;
  std::size_t sent_ = 0;
  bool asks_ = false;
  std::optional<directory> directory_;
  std::vector<std::unique_ptr<replica>> replicas_;
  std::optional<router> router_;
  std::uint64_t turn_ = 0;
  std::uint64_t asked_ = 0;
  std::chrono::nanoseconds asking_{0};
};

prompt prompt_of(const replay::trace_row& row, request_id id,
                 std::int32_t hash_tokens) {
  auto out = prompt{};
  out.id = id;
  out.arrival = row.arrival;
  out.tokens = row.prompt_tokens;
  out.output = row.output_tokens;
  auto parts = std::vector<replay::token_text::own_part>{};
  if (row.prefix_ids.empty())
    parts.push_back({0, replay::mix(id, 0)});
  parts.push_back({row.prompt_tokens, replay::mix(id, 1)});
  const auto text
    = replay::token_text{row.prefix_ids, std::move(parts), hash_tokens};
  for (std::size_t i = 0;
       i < static_cast<std::size_t>(out.tokens / hash_tokens); ++i) {
    const auto hash = text.hash(i);
    out.hashes.emplace_back(&hash, sizeof(hash));
  }
  return out;
}

double share(token_count part, token_count all) {
  return all == 0
         ? 0
         : 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

void report(const settings& set, const deployment& all,
            const std::vector<replay::trace_row>& rows, double seconds) {
  auto sum = replica_tally{};
  auto most = token_count{0};
  for (const auto& one : all.replicas()) {
    const auto& x = one->tally();
    sum.prompts += x.prompts;
    sum.prompt_tokens += x.prompt_tokens;
    sum.hit_tokens += x.hit_tokens;
    sum.computed_tokens += x.computed_tokens;
    sum.load_failures += x.load_failures;
    sum.short_prompts += x.short_prompts;
    sum.short_tokens += x.short_tokens;
    sum.longer_prompts += x.longer_prompts;
    sum.longer_tokens += x.longer_tokens;
    sum.promised_prompts += x.promised_prompts;
    sum.first_token.insert(sum.first_token.end(), x.first_token.begin(),
                           x.first_token.end());
    most = std::max(most, x.computed_tokens);
  }
  std::sort(sum.first_token.begin(), sum.first_token.end());
  const auto quantile = [&](double q) {
    return sum.first_token.empty()
           ? 0.0
           : static_cast<double>(sum.first_token[static_cast<std::size_t>(
               q * static_cast<double>(sum.first_token.size() - 1))])
               / 1e9;
  };
  const auto ideal = replay::ideal_of(rows);
  const auto mean = static_cast<double>(sum.computed_tokens)
                  / static_cast<double>(all.replicas().size());
  std::printf("policy %s, %zu replicas, pool of %lld tokens each\n",
              set.policy.c_str(), all.replicas().size(),
              static_cast<long long>(set.shape.pool_tokens)
                * (set.policy == "one_pool" ? set.replicas : 1));
  std::printf("prompts %llu, tokens %lld, load failures %llu\n",
              static_cast<unsigned long long>(sum.prompts),
              static_cast<long long>(sum.prompt_tokens),
              static_cast<unsigned long long>(sum.load_failures));
  std::printf("token hit rate %.2f %% (without limits %.2f %%)\n",
              share(sum.hit_tokens, sum.prompt_tokens),
              share(ideal.hit_tokens, ideal.prompt_tokens));
  std::printf("computed tokens per replica, most by mean %.3f\n",
              mean == 0 ? 0 : static_cast<double>(most) / mean);
  std::printf("first token, simulated s: p50 %.2f, p99 %.2f\n", quantile(0.5),
              quantile(0.99));
  if (sum.promised_prompts > 0)
    std::printf("lookups that found less than promised %.3f %% (%.3f %% of "
                "tokens), more %.3f %% (%.3f %%)\n",
                100.0 * static_cast<double>(sum.short_prompts)
                  / static_cast<double>(sum.promised_prompts),
                share(sum.short_tokens, sum.prompt_tokens),
                100.0 * static_cast<double>(sum.longer_prompts)
                  / static_cast<double>(sum.promised_prompts),
                share(sum.longer_tokens, sum.prompt_tokens));
  std::printf("wall %.1f s, one question %.1f us on average\n", seconds,
              all.ask_us());
}

} // namespace

int main(int argc, char** argv) {
  auto set = settings{};
  auto app
    = CLI::App{"Sends the prompts of a trace to replicas and counts what "
               "their host pools have"};
  app.add_option("--trace", set.trace, "Mooncake JSON lines")->required();
  app.add_option("--rows", set.rows, "First rows of the trace; 0 means all");
  app.add_option("--replicas", set.replicas, "Replicas")
    ->check(CLI::Range(1, 64));
  app.add_option("--policy", set.policy, "Who decides where a prompt goes")
    ->check(CLI::IsMember(
      std::vector<std::string>{std::begin(policies), std::end(policies)}));
  app.add_option("--depth", set.depth,
                 "Leading prefix ids that policy prefix looks at");
  app.add_option("--late-rows", set.late_rows,
                 "Prompt with which the last replica joins; 0 means the first");
  app.add_option("--pool-tokens", set.shape.pool_tokens,
                 "Tokens in the host pool of each replica");
  CLI11_PARSE(app, argc, argv);
  auto rows = get(replay::read_trace(set.trace));
  if (set.rows > 0 && set.rows < rows.size())
    rows.resize(set.rows);
  const auto start = std::chrono::steady_clock::now();
  auto all = deployment{set};
  auto next = std::size_t{0};
  for (auto now = nanoseconds_t{0}; next < rows.size() || !all.idle();
       now += set.shape.step) {
    if (next < rows.size() && rows[next].arrival <= now)
      all.settle();
    for (; next < rows.size() && rows[next].arrival <= now; ++next)
      all.send(prompt_of(rows[next], next + 1, set.shape.chunk_tokens),
               rows[next]);
    all.step(now);
  }
  const auto seconds
    = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
  report(set, all, rows, seconds.count());
  return 0;
}
