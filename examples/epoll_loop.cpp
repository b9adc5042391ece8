// SPDX-License-Identifier: Apache-2.0

/// @file
/// An engine that is one epoll loop, with the runtime in it. Only `epoll_wait`
/// blocks: calls return at once, and what they lead to makes a descriptor
/// readable.
///
///   epoll-loop         serves 24 requests, then ends by itself
///   epoll-loop 1000    serves so many
///
/// SIGINT and SIGTERM end it earlier and as cleanly: what runs is aborted.

#include "kvtide/prefix_hasher.hpp"
#include "kvtide/runtime.hpp"

#include "examples/epoll_blocks.hpp"
#include "examples/epoll_model.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace epoll_loop;
using namespace std::chrono_literals;
using kvtide::block_id;
using kvtide::request_id;
using kvtide::token_count;

constexpr token_count block_tokens = 16;
constexpr std::int32_t blocks_per_chunk = 2;
constexpr std::size_t blocks_per_request = all_tokens / block_tokens;
constexpr std::size_t blocks = 1 + 5 * blocks_per_request; // 0 is a hole.
constexpr auto arrivals_every = 2ms;

/// Ends the program; only for what a program cannot go on without.
[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "epoll-loop: %s\n", why.c_str());
  std::exit(1);
}

int checked(int fd, const char* what) {
  if (fd < 0)
    die(std::string{what} + " failed");
  return fd;
}

// -- the engine ---------------------------------------------------------------

struct request {
  enum class stage { waiting, asked, put_off, loading, running };

  tokens_t tokens;
  kvtide::prefix_hasher hasher{block_tokens};
  std::vector<block_id> blocks;
  token_count computed = 0;
  stage at = stage::waiting;
  bool scheduled_before = false;
};

class engine {
public:
  explicit engine(std::uint64_t requests)
    : to_come_(requests), kv_(blocks * block_tokens), runtime_(start()) {
    auto memory = kvtide::kv_memory{};
    constexpr auto block_bytes = block_tokens * sizeof(kv_t);
    memory.tensors
      = {{kv_.data(), blocks * block_bytes, kvtide::memory_kind::host, blocks,
          block_bytes, block_bytes}};
    memory.references = {{0, 0, 0, 0, block_bytes}};
    side().register_kv(std::move(memory));
  }

  /// @returns what `main` returns
  int run() {
    const auto poller = checked(::epoll_create1(EPOLL_CLOEXEC), "epoll");
    const auto clock = open_clock();
    const auto signals = open_signals();
    for (auto fd : {clock, signals, runtime_.event_fd(), side().event_fd()}) {
      auto what = epoll_event{EPOLLIN, {}};
      what.data.fd = fd;
      checked(::epoll_ctl(poller, EPOLL_CTL_ADD, fd, &what), "epoll_ctl");
    }
    while (!over_) {
      auto ready = epoll_event{};
      if (::epoll_wait(poller, &ready, 1, -1) < 1)
        continue; // A debugger interrupts it, say.
      if (ready.data.fd == clock)
        on_clock(clock);
      else if (ready.data.fd == signals)
        on_signal(signals);
      else if (ready.data.fd == runtime_.event_fd())
        for (const auto& event : runtime_.poll())
          std::visit([this](const auto& x) { on(x); }, event);
      else
        for (const auto& event : side().poll())
          std::visit([this](const auto& x) { on(x); }, event);
      turn();
    }
    for (auto fd : {poller, clock, signals})
      ::close(fd);
    std::printf("%zu requests served, %zu aborted, %zu wrong; %lld tokens came "
                "from the host pool\n",
                served_, aborted_, wrong_, static_cast<long long>(loaded_));
    return wrong_ == 0 && book_.free() == blocks - 1 ? 0 : 1;
  }

private:
  using stage = request::stage;

  static kvtide::runtime start() {
    auto opts = kvtide::options{};
    opts.groups[0].tokens_per_block = block_tokens;
    opts.blocks_per_chunk = blocks_per_chunk;
    opts.tokens_per_hash = block_tokens;
    opts.host_bytes = 64 << 10;
    auto made = kvtide::runtime::start(opts);
    if (!made)
      die(made.failure().text);
    return std::move(made).value();
  }

  kvtide::rank& side() {
    return runtime_.local_rank(0);
  }

  // -- what wakes the loop ----------------------------------------------------

  static int open_clock() {
    const auto fd = checked(
      ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd");
    const auto every
      = timespec{0, std::chrono::nanoseconds{arrivals_every}.count()};
    const auto when = itimerspec{every, every};
    checked(::timerfd_settime(fd, 0, &when, nullptr), "timerfd_settime");
    return fd;
  }

  static int open_signals() {
    auto set = sigset_t{};
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGINT);
    ::sigaddset(&set, SIGTERM);
    return checked(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC),
                   "signalfd");
  }

  /// Plays a client: one more request, until all have come.
  void on_clock(int clock) {
    auto ticks = std::uint64_t{0};
    if (::read(clock, &ticks, sizeof(ticks)) < 0)
      return;
    for (auto& [id, one] : requests_)
      if (one.at == stage::put_off)
        one.at = stage::waiting;
    if (to_come_ == 0 || !registered_)
      return;
    --to_come_;
    const auto id = ++last_request_;
    auto& one = requests_[id];
    one.tokens = prompt_of(id);
    auto call = kvtide::add_request{};
    call.request = id;
    call.prompt_tokens = call.known_tokens = prompt_tokens;
    runtime_.add(std::move(call));
    send_keys(id, one, 0);
  }

  void on_signal(int signals) {
    auto info = signalfd_siginfo{};
    if (::read(signals, &info, sizeof(info)) < 0)
      return;
    std::printf("%s: aborting what runs\n",
                ::strsignal(static_cast<int>(info.ssi_signo)));
    to_come_ = 0;
    while (!requests_.empty())
      end(requests_.begin(), kvtide::finish_reason::abort);
  }

  // -- requests ---------------------------------------------------------------

  using place = std::map<request_id, request>::iterator;

  /// Keys of the tokens from `first` on, as far as they fill a block.
  void send_keys(request_id id, request& one, std::size_t first) {
    const auto made = one.hasher.made();
    auto hashes
      = one.hasher.append(one.tokens.data() + first, one.tokens.size() - first);
    if (!hashes.empty())
      runtime_.extend({id, made, std::move(hashes), {}, {}});
  }

  /// Its blocks come back with the answer.
  void end(place at, kvtide::finish_reason why) {
    const auto& one = at->second;
    runtime_.finish({at->first, why,
                     static_cast<token_count>(one.tokens.size()),
                     one.computed});
    book_.end(at->first, one.blocks);
    aborted_ += why != kvtide::finish_reason::length;
    requests_.erase(at);
  }

  kv_t& kv_at(const request& one, std::size_t token) {
    const auto block = one.blocks[token / block_tokens];
    return kv_[block * block_tokens + token % block_tokens];
  }

  /// Computes all known tokens of a request, and generates one.
  void compute(place at) {
    auto& one = at->second;
    auto last = kv_t{0};
    for (auto i = static_cast<std::size_t>(one.computed); i < one.tokens.size();
         ++i) {
      auto sum = kv_t{0};
      for (std::size_t before = 0; before < i; ++before)
        sum = attend(sum, kv_at(one, before));
      kv_at(one, i) = last = kv_of(sum, one.tokens[i]);
    }
    const auto known = one.tokens.size();
    one.computed = static_cast<token_count>(known);
    one.tokens.push_back(next_token(last));
    send_keys(at->first, one, known);
    if (one.tokens.size() < all_tokens)
      return;
    ++served_;
    wrong_ += one.tokens != generated_from(prompt_of(at->first));
    end(at, kvtide::finish_reason::length);
  }

  // -- steps ------------------------------------------------------------------

  /// Whatever has happened: admits requests, and begins the next step if there
  /// is something to do in it.
  void turn() {
    for (auto& [id, one] : requests_)
      if (one.at == stage::waiting && admit(one))
        runtime_.lookup({{id, 0, prompt_tokens}});
    if (step_open_)
      return;
    auto call = kvtide::step_call{};
    for (auto& [id, one] : requests_)
      if (one.at == stage::running)
        call.rows.push_back(schedule(id, one));
    if (!call.rows.empty() || std::exchange(loads_wait_, false)) {
      call.step = ++last_step_;
      step_open_ = true;
      runtime_.step(std::move(call));
      side().begin_step(last_step_);
    } else if (to_come_ == 0 && requests_.empty() && !stopping_) {
      stopping_ = true;
      runtime_.shutdown(1s);
    }
  }

  /// Gives a request all its blocks at once, so that it never waits for one.
  bool admit(request& one) {
    if (!book_.fill(one.blocks, blocks_per_request))
      return false;
    one.at = stage::asked;
    return true;
  }

  static kvtide::step_row schedule(request_id id, request& one) {
    auto row = kvtide::step_row{};
    row.request = id;
    row.computed = one.computed;
    row.known = static_cast<token_count>(one.tokens.size());
    row.scheduled = row.known - row.computed;
    if (!std::exchange(one.scheduled_before, true)) {
      row.kind = kvtide::row_kind::fresh;
      row.new_blocks = {one.blocks};
    }
    return row;
  }

  // -- what the runtime says --------------------------------------------------

  void on(const kvtide::lookup_answer& x) {
    for (const auto& hit : x.hits) {
      const auto at = requests_.find(hit.request);
      if (at == requests_.end())
        continue; // Aborted meanwhile, which ended its promise.
      auto& one = at->second;
      if (hit.ask_again) {
        one.at = stage::put_off;
      } else if (hit.tokens == 0) {
        one.at = stage::running;
      } else {
        one.at = stage::loading;
        one.computed = hit.tokens;
        loads_wait_ = true;
        auto call = kvtide::allocated{};
        call.request = hit.request;
        call.external = hit.tokens;
        call.blocks = {one.blocks};
        call.hashed = {std::vector<std::uint8_t>(one.blocks.size(), 0)};
        runtime_.allocate(std::move(call));
      }
    }
  }

  void on(const kvtide::load_done& x) {
    const auto at = requests_.find(x.request);
    if (at == requests_.end())
      return;
    at->second.at = stage::running;
    loaded_ += at->second.computed;
  }

  void on(const kvtide::load_failed& x) {
    const auto at = requests_.find(x.request);
    const auto ended = at == requests_.end();
    const auto goes_on = !x.use_new_blocks
                      || book_.lose(x, ended ? nullptr : &at->second.blocks);
    if (ended)
      return;
    at->second.at = stage::running;
    at->second.computed = x.first_bad_token;
    if (!goes_on)
      end(at, kvtide::finish_reason::error);
  }

  void on(const kvtide::finish_answer& x) {
    book_.answered(x);
  }

  void on(const kvtide::blocks_released& x) {
    book_.released(x);
  }

  /// Answers `shutdown`: the only call here that it can be.
  void on(const kvtide::call_done& x) {
    if (!x.in_flight.empty())
      std::printf("%zu copies were still running\n", x.in_flight.size());
    side().unregister_kv();
  }

  void on(const kvtide::call_failed& x) {
    die(x.reason.text);
  }

  void on(const kvtide::runtime_lost& x) {
    die(x.reason.text);
  }

  // -- what the rank says -----------------------------------------------------

  void on(const kvtide::kv_registered& x) {
    if (x.reason.code != kvtide::ec::none)
      die(x.reason.text);
    registered_ = true;
    std::printf("serving, %llu chunks fit the host pool\n",
                static_cast<unsigned long long>(x.slots));
    std::fflush(stdout);
  }

  void on(const kvtide::step_ready& x) {
    // On the host the fence is over when this comes.
    for (auto at = requests_.begin(); at != requests_.end();) {
      const auto one = at++;
      if (one->second.at == stage::running && one->second.scheduled_before)
        compute(one);
    }
    side().end_step(x.step, {});
    step_open_ = false;
  }

  void on(const kvtide::rank_failed& x) {
    die(x.reason.text);
  }

  void on(const kvtide::kv_unregistered&) {
    over_ = true;
  }

  /// Plans, counters, and what this engine has no use for.
  template <class Event>
  void on(const Event&) {
    // nop
  }

  std::uint64_t to_come_;
  std::vector<kv_t> kv_;
  kvtide::runtime runtime_;
  block_book book_{blocks - 1};
  std::map<request_id, request> requests_;
  request_id last_request_ = 0;
  kvtide::step_id last_step_ = 0;
  bool registered_ = false;
  bool step_open_ = false;
  /// Loads start with a step.
  bool loads_wait_ = false;
  bool stopping_ = false;
  bool over_ = false;
  std::size_t served_ = 0;
  std::size_t aborted_ = 0;
  std::size_t wrong_ = 0;
  token_count loaded_ = 0;
};

} // namespace

int main(int argc, char** argv) {
  // Before any thread starts, so that all of them leave signals to signalfd.
  auto set = sigset_t{};
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return engine{argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 24}.run();
}
