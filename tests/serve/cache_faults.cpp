// SPDX-License-Identifier: Apache-2.0

#include "tests/serve/cache_faults.hpp"

#include "gpu/host_copy_engine.hpp"
#include "tests/support/runtime_access.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace serve::test {

namespace {

using kvtide::runtime_access;

constexpr auto patience = std::chrono::seconds{30};

template <class Handle>
void kill(const Handle& actor) {
  caf::anon_send_exit(actor, caf::exit_reason::kill);
}

/// Waits for a notice, and drops those before it.
template <class Wanted, class Side>
void await(Side& side) {
  for (;;) {
    for (const auto& event : side.poll())
      if (std::holds_alternative<Wanted>(event))
        return;
    if (!side.wait(patience)) {
      // Nothing that a test could say would be heard from this thread.
      std::fputs("a cache under test does not answer\n", stderr);
      std::abort();
    }
  }
}

/// Passes all calls on, and changes bytes of the host pool that a load is about
/// to read. Nothing writes them then: a load reads what is stored (S8).
class corrupting_engine final : public kvtide::gpu::copy_engine {
public:
  corrupting_engine(std::unique_ptr<kvtide::gpu::copy_engine> real,
                    std::shared_ptr<std::atomic<std::uint64_t>> count)
    : real_(std::move(real)), count_(std::move(count)) {
    // nop
  }

  kvtide::ec submit(kvtide::gpu::copy_job job) override {
    if (job.kind == kvtide::job_kind::load && !job.fragments.empty()) {
      const auto& piece = job.fragments.front();
      auto* bytes
        = static_cast<std::byte*>(const_cast<void*>(piece.src)); // NOLINT
      for (auto at = std::uint64_t{0}; at < piece.bytes; ++at)
        bytes[at] ^= std::byte{0x55};
      count_->fetch_add(1);
    }
    return real_->submit(std::move(job));
  }

  std::optional<kvtide::fence>
  make_fence(kvtide::step_id step,
             const std::vector<kvtide::job_id>& jobs) override {
    return real_->make_fence(step, jobs);
  }

  void poll(std::vector<kvtide::gpu::completion>& done,
            std::vector<kvtide::step_id>& fences) override {
    real_->poll(done, fences);
  }

  std::size_t in_flight() const override {
    return real_->in_flight();
  }

private:
  std::unique_ptr<kvtide::gpu::copy_engine> real_;
  std::shared_ptr<std::atomic<std::uint64_t>> count_;
};

std::unique_ptr<kvtide::gpu::copy_engine>
make_real(const kvtide::device_config& config,
          kvtide::gpu::wake_function wake) {
  auto plain = kvtide::gpu::host_engine_config{};
  plain.wake = std::move(wake);
  plain.latency = config.latency.count();
  plain.bytes_per_second = config.bytes_per_second;
  plain.events = config.events;
  return kvtide::gpu::make_host_copy_engine(std::move(plain)).value();
}

/// Starts the cache's rank again whenever the engine starts a cache.
/// @param change the configuration of the rank's new device
void change_device(engine_options& opts,
                   std::function<void(kvtide::device_config&)> change) {
  opts.on_cache = [change = std::move(change), before = opts.on_cache](
                    kvtide::runtime& rt, const kvtide::kv_memory& memory) {
    auto& side = rt.local_rank(0);
    kill(runtime_access::parts(side).worker);
    await<kvtide::kv_unregistered>(side);
    await<kvtide::rank_lost>(rt);
    runtime_access::parts(rt).change_device = change;
    if (rt.restart_rank(0).code != kvtide::ec::none)
      std::abort();
    side.register_kv(memory);
    await<kvtide::kv_registered>(side);
    await<kvtide::rank_back>(rt);
    if (before)
      before(rt, memory);
  };
}

} // namespace

void add_trouble(engine_options& opts, copy_trouble what) {
  change_device(opts, [what = std::move(what)](kvtide::device_config& config) {
    config.fault = what.fault;
    if (what.corrupted)
      config.engine = [config, count = what.corrupted](
                        const kvtide::gpu::wake_function& wake) {
        return std::make_unique<corrupting_engine>(make_real(config, wake),
                                                   count);
      };
  });
}

// -- copies that run on -------------------------------------------------------

struct copy_gate::state {
  const std::optional<kvtide::job_kind> kind;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = false;
  bool has_kept = false;
  /// Of the engines behind it.
  std::map<const void*, kvtide::gpu::wake_function> wakes;
};

namespace {

/// Passes all calls on, and says of the gate's jobs that they ended when the
/// gate is open.
class gated_engine final : public kvtide::gpu::copy_engine {
public:
  gated_engine(std::unique_ptr<kvtide::gpu::copy_engine> real,
               std::shared_ptr<copy_gate::state> gate,
               kvtide::gpu::wake_function wake)
    : real_(std::move(real)), gate_(std::move(gate)) {
    const auto guard = std::lock_guard{gate_->mutex};
    gate_->wakes.emplace(this, std::move(wake));
  }

  ~gated_engine() override {
    auto guard = std::unique_lock{gate_->mutex};
    if (!kept_.empty())
      gate_->changed.wait(guard, [this] { return gate_->is_open; });
    gate_->wakes.erase(this);
  }

  kvtide::ec submit(kvtide::gpu::copy_job job) override {
    if (job.kind == gate_->kind.value_or(job.kind)) {
      kept_.insert(job.id);
      const auto guard = std::lock_guard{gate_->mutex};
      gate_->has_kept = true;
      gate_->changed.notify_all();
    }
    return real_->submit(std::move(job));
  }

  std::optional<kvtide::fence>
  make_fence(kvtide::step_id step,
             const std::vector<kvtide::job_id>& jobs) override {
    return real_->make_fence(step, jobs);
  }

  void poll(std::vector<kvtide::gpu::completion>& done,
            std::vector<kvtide::step_id>& fences) override {
    real_->poll(ended_, fences);
    const auto guard = std::lock_guard{gate_->mutex};
    for (auto& one : std::exchange(ended_, {})) {
      if (kept_.count(one.job) > 0 && !gate_->is_open) {
        ended_.push_back(std::move(one));
        continue;
      }
      kept_.erase(one.job);
      done.push_back(std::move(one));
    }
  }

  std::size_t in_flight() const override {
    return real_->in_flight() + ended_.size();
  }

private:
  std::unique_ptr<kvtide::gpu::copy_engine> real_;
  std::shared_ptr<copy_gate::state> gate_;
  /// Jobs of the gate that nobody has heard the end of.
  std::set<kvtide::job_id> kept_;
  std::vector<kvtide::gpu::completion> ended_;
};

} // namespace

copy_gate::copy_gate(std::optional<kvtide::job_kind> kind)
  : state_(new state{kind, {}, {}, false, false, {}}) {
  // nop
}

copy_gate::~copy_gate() {
  open();
}

bool copy_gate::has_kept() const {
  auto guard = std::unique_lock{state_->mutex};
  return state_->changed.wait_for(guard, std::chrono::minutes{1},
                                  [this] { return state_->has_kept; });
}

void copy_gate::open() {
  const auto guard = std::lock_guard{state_->mutex};
  state_->is_open = true;
  state_->changed.notify_all();
  for (const auto& [engine, wake] : state_->wakes)
    wake();
}

void add_gate(engine_options& opts, const copy_gate& gate) {
  change_device(opts, [gate = gate.state_](kvtide::device_config& config) {
    config.engine = [config, gate](const kvtide::gpu::wake_function& wake) {
      return std::make_unique<gated_engine>(make_real(config, wake), gate,
                                            wake);
    };
  });
}

// -- actors that die ----------------------------------------------------------

// Weak: whoever holds an actor must not outlive its system.
struct cache_killer::handles {
  std::mutex mutex;
  caf::weak_actor_ptr scheduler;
  caf::weak_actor_ptr cache;
  caf::weak_actor_ptr worker;
  std::uint64_t started = 0;

  void end(caf::weak_actor_ptr& actor) {
    const auto guard = std::lock_guard{mutex};
    if (const auto strong = actor.lock())
      kill(caf::actor_cast<caf::actor>(strong));
    actor = nullptr;
  }
};

cache_killer::cache_killer(engine_options& opts)
  : handles_(std::make_shared<handles>()) {
  opts.on_cache = [mine = handles_, before = opts.on_cache](
                    kvtide::runtime& rt, const kvtide::kv_memory& memory) {
    if (before)
      before(rt, memory);
    const auto weak = [](const auto& actor) {
      return caf::actor_cast<caf::weak_actor_ptr>(actor);
    };
    const auto guard = std::lock_guard{mine->mutex};
    mine->scheduler = weak(runtime_access::parts(rt).scheduler);
    mine->cache = weak(runtime_access::parts(rt).cache);
    mine->worker = weak(runtime_access::parts(rt.local_rank(0)).worker);
    ++mine->started;
  };
}

void cache_killer::kill_scheduler() {
  handles_->end(handles_->scheduler);
}

void cache_killer::kill_cache_manager() {
  handles_->end(handles_->cache);
}

void cache_killer::kill_worker() {
  handles_->end(handles_->worker);
}

std::uint64_t cache_killer::started() const {
  const auto guard = std::lock_guard{handles_->mutex};
  return handles_->started;
}

} // namespace serve::test
