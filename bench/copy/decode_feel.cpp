// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/decode_feel.hpp"

#include "bench/copy/background_load.hpp"
#include "bench/copy/cuda_engine.hpp"
#include "bench/copy/cuda_memory.hpp"
#include "bench/copy/decode_loop.hpp"
#include "bench/copy/progress.hpp"
#include "bench/copy/turns.hpp"
#include "gpu/cuda/device_scope.hpp"
#include "gpu/cuda/devices.hpp"

#include <string>
#include <utility>

namespace kvtide::bench {

namespace {

using gpu::check;

constexpr auto share_of_link = 0.9;
constexpr std::uint64_t fragment_bytes = 64u << 10;
constexpr std::uint64_t load_bytes = 256u << 20;
constexpr std::uint64_t quick_load_bytes = 4u << 20;
constexpr std::uint64_t jobs = 16;

/// Seconds of one large load, nothing beside it.
result<double> time_of_one(const batch& what) {
  auto stream = gpu::make_stream();
  if (!stream)
    return stream.failure();
  const auto where = stream.value().get();
  auto seconds = std::vector<double>{};
  for (auto i = 0; i < 5; ++i) {
    auto took = time_of([&]() -> error {
      if (auto failed
          = check("cudaMemcpyAsync",
                  ::cudaMemcpyAsync(what.where.blocks, what.where.slots,
                                    what.bytes, cudaMemcpyHostToDevice, where));
          failed.code != ec::none)
        return failed;
      return check("cudaStreamSynchronize", ::cudaStreamSynchronize(where));
    });
    if (!took)
      return took;
    seconds.push_back(took.value());
  }
  return quantiles_of(std::move(seconds)).p50;
}

/// What runs beside the loop, and what the loop felt of it.
struct situation {
  const char* name;
  /// Empty: nothing.
  background_load::body load;
  decode_loop::times felt;
  std::vector<double> rates;
};

error run_round(decode_loop& loop, situation& what, std::uint32_t iterations) {
  if (!what.load)
    return loop.run(iterations, what.felt);
  auto load = background_load{what.load};
  load.wait();
  auto failed = loop.run(iterations, what.felt);
  auto rate = load.stop();
  if (failed.code != ec::none)
    return failed;
  if (!rate)
    return rate.failure();
  what.rates.push_back(rate.value());
  return {};
}

decode_row row_of(situation&& what, double rate_of_one) {
  auto out = decode_row{};
  out.load = what.name;
  out.iterations = what.felt.iteration.size();
  out.iteration = quantiles_of(std::move(what.felt.iteration));
  out.upload = quantiles_of(std::move(what.felt.upload));
  if (!what.rates.empty())
    out.load_rate = quantiles_of(std::move(what.rates)).p50;
  out.load_by_one = out.load_rate / rate_of_one;
  return out;
}

} // namespace

result<std::vector<decode_row>> measure_decode(const copy_options& options) {
  if (auto refused = gpu::check_device(options.gpu); refused.code != ec::none)
    return refused;
  const gpu::device_scope scope{options.gpu};
  auto pool = gpu::pool_registration::make(options.gpu);
  if (!pool)
    return pool.failure();
  const auto bytes = options.quick ? quick_load_bytes : load_bytes;
  cuda_memory memory;
  if (auto failed = memory.take(pool.value(), bytes); failed.code != ec::none)
    return failed;
  const auto what = make_batch(job_kind::load, memory.sides(), fragment_bytes,
                               bytes / fragment_bytes, jobs);
  auto engine
    = make_cuda_engine(options, copy_path::automatic, std::move(pool).value());
  if (!engine)
    return engine.failure();
  auto alone = time_of_one(what);
  if (!alone)
    return alone.failure();
  const auto rate_of_one = static_cast<double>(bytes) / alone.value();
  decode_loop loop;
  if (auto failed = loop.start(options.quick); failed.code != ec::none)
    return failed;

  auto situations = std::vector<situation>{};
  situations.push_back({"nothing", {}, {}, {}});
  situations.push_back(
    {"unsliced batch", unsliced_batches(options.gpu, what), {}, {}});
  situations.push_back(
    {"kvtide, 90 %",
     paced_jobs(*engine.value(), what, share_of_link * rate_of_one),
     {},
     {}});
  auto told = progress{"decode", options.decode_rounds};
  for (std::uint32_t round = 0; round < options.decode_rounds; ++round) {
    if (interrupted())
      break;
    told.next("beside nothing, a batch, kvtide");
    for (auto& one : situations)
      if (auto failed = run_round(loop, one, options.decode_iterations);
          failed.code != ec::none)
        return error{failed.code, std::string{"decode beside "} + one.name
                                    + ": " + failed.text};
  }
  auto out = std::vector<decode_row>{};
  if (!situations.back().felt.iteration.empty())
    for (auto& one : situations)
      out.push_back(row_of(std::move(one), rate_of_one));
  return out;
}

} // namespace kvtide::bench
