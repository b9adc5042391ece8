// SPDX-License-Identifier: Apache-2.0

#include "kvtide/blocking.hpp"
#include "kvtide/prefix_hasher.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace kvtide;
using namespace std::chrono_literals;

const auto get = [](auto answer) { // Its value; or the end, with a sentence.
  if (!answer)
    std::exit((std::puts(answer.failure().text.c_str()), 1));
  return std::move(answer).value();
};

int main() {
  auto memory = std::vector<int>(10 * 256); // Plays ten blocks of 1 KiB.
  std::generate(memory.begin(), memory.end(), std::rand);
  auto opts = options{};     // One rank, 16 tokens per block.
  opts.blocks_per_chunk = 1; // A chunk is stored and loaded as a whole.
  opts.host_bytes = 1 << 20; // The pool in host memory.
  auto rt = get(runtime::start(opts));
  auto engine = blocking_runtime{rt};
  auto gpu = blocking_rank{rt.local_rank(0)};
  auto kv = kv_memory{};
  kv.tensors = {{memory.data(), 10240, memory_kind::host, 10, 1024, 1024}};
  kv.references = {{0, 0, 0, 0, 1024}}; // One group, one layer.
  get(gpu.register_kv(kv, 20s));

  const auto prompt = std::vector<std::int32_t>(65, 42); // Four blocks and one.
  const auto keys = prefix_hasher{16}.append(prompt.data(), prompt.size());
  auto step = [&, id = step_id{0}](std::vector<step_row> rows) mutable {
    const auto plan = get(engine.step({++id, std::move(rows), {}, {}}, 20s));
    get(gpu.begin_step(id, {}, 20s));
    rt.local_rank(0).end_step(id, {}); // Compute is enqueued before this.
    return plan.pending_work;
  };

  rt.add({1, 65, 65}); // Computes its prompt in blocks 1 to 5.
  rt.extend({1, 0, keys, {}, {}});
  step({{1, row_kind::fresh, {{1, 2, 3, 4, 5}}, 0, 65, 65}});
  get(engine.finish({1, finish_reason::stop, 65, 65}, 20s));
  while (step({})) // Its four chunks are stored meanwhile.
    continue;
  rt.add({2, 65, 65}); // The same prompt: loaded, into blocks 6 to 9.
  rt.extend({2, 0, keys, {}, {}});
  const auto hit = get(engine.lookup({{2, 0, 65}}, 20s)).hits[0];
  rt.allocate({2, hit.tokens, {{6, 7, 8, 9}}, {{0, 0, 0, 0}}});
  step({}); // Loads begin with a step.
  for (auto loaded = false; !loaded && engine.wait(20s);)
    for (const auto& event : engine.poll())
      loaded |= std::holds_alternative<load_done>(event);
  const auto same = std::equal(&memory[256], &memory[1280], &memory[1536]);
  std::puts(same ? "computed once, used twice" : "nothing came back");
  return same ? 0 : 1;
}
