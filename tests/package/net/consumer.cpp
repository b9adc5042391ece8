// SPDX-License-Identifier: Apache-2.0

#include "kvtide/network.hpp"
#include "kvtide/runtime.hpp"
#include "kvtide/worker.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>
#include <vector>

namespace {

constexpr auto patience = std::chrono::seconds{20};

template <class T>
T take(kvtide::result<T> from) {
  if (!from) {
    std::printf("%s\n", from.failure().text.c_str());
    std::exit(1);
  }
  return std::move(from).value();
}

std::uint64_t host_slots(kvtide::runtime& engine) {
  engine.get_stats();
  while (engine.wait(patience))
    for (const auto& event : engine.poll())
      if (const auto* answer = std::get_if<kvtide::stats_answer>(&event))
        return answer->values.host_slots;
  return 0;
}

} // namespace

int main() {
  auto opts = kvtide::options{};
  opts.host_bytes = 1 << 20;
  auto engine_opts = opts;
  engine_opts.workers.resize(1);
  engine_opts.workers[0].where = kvtide::worker_place::kind::dials_in;
  auto listens = kvtide::network_options{};
  listens.listen = "127.0.0.1:0";
  engine_opts.network = take(kvtide::make_network(listens));
  auto engine = take(kvtide::runtime::start(engine_opts));

  auto worker_opts = kvtide::worker_options{};
  worker_opts.shared = opts;
  worker_opts.shared.network = take(kvtide::make_network({}));
  worker_opts.ranks = {0};
  worker_opts.scheduler = kvtide::address_of(*engine_opts.network);
  auto worker = take(kvtide::worker::start(worker_opts));

  auto gpu = std::vector<std::byte>(1 << 16);
  auto memory = kvtide::kv_memory{};
  memory.tensors.push_back({});
  auto& tensor = memory.tensors.back();
  tensor.base = gpu.data();
  tensor.bytes = gpu.size();
  tensor.blocks = 16;
  tensor.block_stride = tensor.page_bytes = gpu.size() / 16;
  memory.references.push_back({0, 0, 0, 0, tensor.page_bytes});
  worker.local_rank(0).register_kv(std::move(memory));

  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (host_slots(engine) == 0)
    if (std::chrono::steady_clock::now() > deadline)
      return 1;
  return 0;
}
