// SPDX-License-Identifier: Apache-2.0

#include "gpu/cuda/calibration.hpp"

#include "gpu/cuda/copy_commands.hpp"
#include "gpu/cuda/device_buffer.hpp"
#include "gpu/cuda/event.hpp"
#include "gpu/cuda/pinned_buffer.hpp"
#include "gpu/cuda/stream.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kvtide::gpu {

namespace {

constexpr std::uint64_t buffer_bytes = 64u << 20;
constexpr std::uint64_t batch_bytes = 8u << 20;
constexpr std::uint64_t smallest = 4u << 10;
constexpr std::uint64_t largest = 256u << 10;
constexpr int repeats = 3;

/// Both ends of the copies that are measured, and a stream for them.
struct bench {
  device_buffer device;
  pinned_buffer host;
  cuda_stream work;
  cuda_event begin;
  cuda_event end;
  std::unique_ptr<piece_tables> tables;
};

/// Nothing may use memory that is given back, also if a measurement fails.
struct end_of_work {
  ~end_of_work() {
    ignore(::cudaStreamSynchronize(stream));
  }

  cudaStream_t stream;
};

template <class T>
error take(result<T> made, T& out) {
  if (!made)
    return made.failure();
  out = std::move(made).value();
  return {};
}

result<bench> set_up() {
  auto out = bench{};
  for (auto failed :
       {take(make_device_buffer(buffer_bytes), out.device),
        take(make_pinned_buffer(buffer_bytes), out.host),
        take(make_stream(), out.work), take(make_event(true), out.begin),
        take(make_event(true), out.end),
        take(piece_tables::make(1), out.tables)})
    if (failed.code != ec::none)
      return failed;
  return out;
}

/// Fragments of one size that are not adjacent on either side.
std::vector<fragment> fragments_of(const bench& on, job_kind kind,
                                   std::uint64_t bytes, std::uint64_t total) {
  auto out = std::vector<fragment>{};
  auto* device = static_cast<std::byte*>(on.device.get());
  auto* host = static_cast<std::byte*>(on.host.get());
  for (std::uint64_t at = 0; at < total; at += bytes) {
    auto* there = device + 2 * at;
    auto* here = host + 2 * at;
    out.push_back(kind == job_kind::store ? fragment{here, there, bytes, 0, 0}
                                          : fragment{there, here, bytes, 0, 0});
  }
  return out;
}

/// @returns seconds on the device, the least of several turns
result<double> time_of(bench& on, copy_commands& how, job_kind kind,
                       const std::vector<fragment>& what) {
  auto best = 0.0;
  for (auto i = 0; i < repeats; ++i) {
    if (auto failed = check("cudaEventRecord",
                            ::cudaEventRecord(on.begin.get(), on.work.get()));
        failed.code != ec::none)
      return failed;
    auto taken = how.enqueue(kind, what, on.work.get());
    if (taken.why.code != ec::none)
      return std::move(taken.why);
    if (auto failed = check("cudaEventRecord",
                            ::cudaEventRecord(on.end.get(), on.work.get()));
        failed.code != ec::none)
      return failed;
    if (auto failed = check("cudaStreamSynchronize",
                            ::cudaStreamSynchronize(on.work.get()));
        failed.code != ec::none)
      return failed;
    auto ms = 0.0f;
    if (auto failed
        = check("cudaEventElapsedTime",
                ::cudaEventElapsedTime(&ms, on.begin.get(), on.end.get()));
        failed.code != ec::none)
      return failed;
    const auto seconds = std::max(static_cast<double>(ms), 1e-6) / 1e3;
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

/// Both directions, one after the other.
result<double> time_both(bench& on, copy_commands& how, std::uint64_t bytes,
                         std::uint64_t total) {
  auto sum = 0.0;
  for (const auto kind : {job_kind::store, job_kind::load}) {
    auto one = time_of(on, how, kind, fragments_of(on, kind, bytes, total));
    if (!one)
      return one;
    sum += one.value();
  }
  return sum;
}

copy_commands commands_of(bench& on, copy_path path, std::uint32_t blocks) {
  auto* host = static_cast<std::byte*>(on.host.get());
  auto device = device_address_of(host);
  auto* there = static_cast<std::byte*>(device ? device.value() : nullptr);
  return copy_commands{{path, 0, blocks},
                       *on.tables,
                       [host, there](const void* at, std::uint64_t) -> void* {
                         if (there == nullptr)
                           return nullptr;
                         return there
                              + (static_cast<const std::byte*>(at) - host);
                       }};
}

/// What was measured or read in this process.
std::mutex known_rates_mutex;
std::map<calibration_key, copy_rates> known_rates;

/// How every line begins.
constexpr std::string_view mark = "copies-";

std::string line_of(const calibration_key& key) {
  auto out = std::ostringstream{};
  out << mark << "1\t" << key.device_name << '\t' << key.driver_version << '\t'
      << key.runtime_version << '\t' << key.kernel_blocks << '\t';
  return out.str();
}

/// A file of ours has a line per device and driver; what is larger is not ours.
constexpr std::uintmax_t largest_file = 64u << 10;

/// @returns the lines, or why there are none to be had; a file that is not
///          there has none
result<std::vector<std::string>> lines_of(const std::string& file) {
  namespace fs = std::filesystem;
  const auto refused = [](std::string why) {
    return error{ec::invalid_argument, std::move(why)};
  };
  auto out = std::vector<std::string>{};
  auto failed = std::error_code{};
  const auto what = fs::status(file, failed);
  if (what.type() == fs::file_type::not_found)
    return out;
  if (failed)
    return refused(failed.message());
  // Devices and pipes may have no end, or never begin.
  if (what.type() != fs::file_type::regular)
    return refused("it is no regular file");
  if (fs::file_size(file, failed) > largest_file || failed)
    return refused("it is too large to be one that was written here");
  auto in = std::ifstream{file};
  if (!in)
    return refused("it cannot be read");
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, mark.size(), mark) != 0)
      return refused("it holds something else");
    out.push_back(std::move(line));
  }
  return out;
}

} // namespace

result<copy_rates> measure_copies(std::uint32_t kernel_blocks) {
  auto made = set_up();
  if (!made)
    return made.failure();
  auto& on = made.value();
  const auto end = end_of_work{on.work.get()};
  auto dma = commands_of(on, copy_path::batch, kernel_blocks);
  auto kernel = commands_of(on, copy_path::kernel, kernel_blocks);
  // The first use of anything is slow.
  for (auto* how : {&dma, &kernel})
    if (auto warm = time_both(on, *how, smallest, batch_bytes); !warm)
      return warm.failure();
  auto out = copy_rates{};
  out.kernel_below = 2 * largest;
  for (auto bytes = largest; bytes >= smallest; bytes /= 2) {
    auto by_dma = time_both(on, dma, bytes, batch_bytes);
    if (!by_dma)
      return by_dma.failure();
    auto by_kernel = time_both(on, kernel, bytes, batch_bytes);
    if (!by_kernel)
      return by_kernel.failure();
    if (by_kernel.value() < by_dma.value())
      break;
    out.kernel_below = bytes;
  }
  if (out.kernel_below == smallest)
    out.kernel_below = 0;
  auto slowest = 0.0;
  for (const auto kind : {job_kind::store, job_kind::load}) {
    auto one
      = time_of(on, dma, kind,
                fragments_of(on, kind, buffer_bytes / 2, buffer_bytes / 2));
    if (!one)
      return one.failure();
    slowest = std::max(slowest, one.value());
  }
  out.bytes_per_second = static_cast<std::uint64_t>(
    static_cast<double>(buffer_bytes / 2) / slowest);
  return out;
}

std::optional<copy_rates> read_calibration(const std::string& file,
                                           const calibration_key& key) {
  const auto start = line_of(key);
  const auto lines = lines_of(file);
  if (!lines)
    return std::nullopt;
  for (const auto& line : lines.value()) {
    if (line.compare(0, start.size(), start) != 0)
      continue;
    auto in = std::istringstream{line.substr(start.size())};
    auto out = copy_rates{};
    if (in >> out.kernel_below >> out.bytes_per_second
        && out.bytes_per_second > 0)
      return out;
  }
  return std::nullopt;
}

error write_calibration(const std::string& file, const calibration_key& key,
                        const copy_rates& rates) {
  namespace fs = std::filesystem;
  const auto refused = [&file](const std::string& why) {
    return error{ec::invalid_argument,
                 "cannot keep the measured copy rates in " + file + ": " + why
                   + "; they are measured again at the next start"};
  };
  const auto start = line_of(key);
  auto found = lines_of(file);
  if (!found)
    return refused(found.failure().text);
  auto lines = std::move(found).value();
  std::erase_if(lines, [&start](const std::string& line) {
    return line.compare(0, start.size(), start) == 0;
  });
  lines.push_back(start + std::to_string(rates.kernel_below) + '\t'
                  + std::to_string(rates.bytes_per_second));
  auto failed = std::error_code{};
  if (const auto folder = fs::path{file}.parent_path(); !folder.empty())
    fs::create_directories(folder, failed);
  if (failed)
    return refused(failed.message());
  // Of this process alone, so that two that start together do not mix theirs.
  const auto fresh = file + '.' + std::to_string(::getpid());
  {
    auto out = std::ofstream{fresh};
    for (const auto& line : lines)
      out << line << '\n';
    out.close();
    if (!out) {
      fs::remove(fresh, failed);
      return refused("it cannot be written");
    }
  }
  fs::rename(fresh, file, failed);
  if (!failed)
    return {};
  const auto why = failed.message();
  fs::remove(fresh, failed);
  return refused(why);
}

result<known_copy_rates> rates_of(int device, std::uint32_t kernel_blocks,
                                  const std::string& file) {
  auto facts = facts_of(device);
  if (!facts)
    return facts.failure();
  const auto key
    = calibration_key{facts.value().name, facts.value().driver_version,
                      facts.value().runtime_version, kernel_blocks};
  // Held while measuring: two at once would measure each other.
  const std::lock_guard lock{known_rates_mutex};
  const auto kept = file.empty() ? std::nullopt : read_calibration(file, key);
  auto out = known_copy_rates{};
  if (const auto known = known_rates.find(key); known != known_rates.end())
    out.rates = known->second;
  else if (kept)
    out.rates = known_rates[key] = *kept;
  else if (auto measured = measure_copies(kernel_blocks); measured)
    out.rates = known_rates[key] = measured.value();
  else if (measured.failure().code == ec::out_of_memory)
    return known_copy_rates{estimated_rates, {}};
  else
    return measured.failure();
  // Who cannot write measures again at the next start.
  if (!file.empty() && !kept)
    out.note = write_calibration(file, key, out.rates).text;
  return out;
}

void forget_rates() {
  const std::lock_guard lock{known_rates_mutex};
  known_rates.clear();
}

} // namespace kvtide::gpu
