// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/copy_site.hpp"

#include "bench/copy/progress.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace kvtide::bench {

namespace {

constexpr std::uint32_t warm_up_rounds = 3;

/// One batch per direction, measured in all ways.
struct cell {
  direction where_to = direction::store;
  std::uint64_t fragment_bytes = 0;
  std::uint64_t count = 0;
  std::uint64_t jobs = 1;
};

std::vector<cell> cells_of(const copy_options& options) {
  auto out = std::vector<cell>{};
  for (const auto bytes : options.fragments) {
    auto counts = std::vector<std::uint64_t>{};
    for (const auto wanted : options.counts) {
      const auto most = options.batch_bytes / bytes;
      const auto count = wanted == 0 ? most : wanted;
      if (count > 0 && count <= most)
        counts.push_back(count);
    }
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    for (const auto count : counts)
      for (const auto jobs : options.jobs)
        if (jobs <= count)
          for (const auto where_to : options.directions)
            out.push_back({where_to, bytes, count, jobs});
  }
  return out;
}

/// Nothing is as fast as an engine that copies nothing.
class byte_check {
public:
  /// @param most of one batch
  explicit byte_check(std::uint64_t most)
    : wanted_((2 * most + 7) / 8), found_(2 * most) {
    // No word comes twice.
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      wanted_[i] = (i + 1) * 0x9e3779b97f4a7c15u;
  }

  /// Copies once, between bytes that differ everywhere.
  [[nodiscard]] error run(copy_site& site, const std::vector<batch>& batches,
                          const way& how) {
    for (const auto& what : batches) {
      const auto [from, from_bytes, to, to_bytes] = sides_of(what);
      std::memset(found_.data(), 0, to_bytes);
      if (auto failed = site.move(from, wanted_.data(), from_bytes);
          failed.code != ec::none)
        return failed;
      if (auto failed = site.move(to, found_.data(), to_bytes);
          failed.code != ec::none)
        return failed;
    }
    if (auto took = how.run(); !took)
      return took.failure();
    for (const auto& what : batches) {
      const auto [from, from_bytes, to, to_bytes] = sides_of(what);
      if (auto failed = site.move(found_.data(), to, to_bytes);
          failed.code != ec::none)
        return failed;
      const auto* wanted = reinterpret_cast<const std::byte*>(wanted_.data());
      for (const auto& part : what.fragments)
        if (std::memcmp(
              wanted + (static_cast<const std::byte*>(part.src) - from),
              found_.data() + (static_cast<const std::byte*>(part.dst) - to),
              part.bytes)
            != 0)
          return {ec::device_failure, how.name + " copied something else"};
    }
    return {};
  }

private:
  struct both_ends {
    std::byte* from;
    std::uint64_t from_bytes;
    std::byte* to;
    std::uint64_t to_bytes;
  };

  static both_ends sides_of(const batch& what) {
    if (what.kind == job_kind::store)
      return {what.where.blocks, 2 * what.bytes, what.where.slots, what.bytes};
    return {what.where.slots, what.bytes, what.where.blocks, 2 * what.bytes};
  }

  std::vector<std::uint64_t> wanted_;
  std::vector<std::byte> found_;
};

std::vector<double> ratios(const std::vector<double>& seconds,
                           const std::vector<double>& of_other) {
  auto out = std::vector<double>(seconds.size());
  std::transform(of_other.begin(), of_other.end(), seconds.begin(), out.begin(),
                 [](double other, double own) { return other / own; });
  return out;
}

std::vector<double> rates(const std::vector<double>& seconds, double bytes) {
  auto out = seconds;
  for (auto& x : out)
    x = bytes / x;
  return out;
}

error measure(copy_site& site, byte_check& check, const cell& what,
              const copy_options& options, std::vector<copy_row>& out) {
  auto batches = std::vector<batch>{};
  for (const auto kind : {job_kind::store, job_kind::load})
    if (what.where_to == direction::both
        || (what.where_to == direction::store) == (kind == job_kind::store))
      batches.push_back(make_batch(kind, site.memory(kind), what.fragment_bytes,
                                   what.count, what.jobs));
  const auto ways = site.ways(batches);
  for (std::size_t i = 1; i < ways.size(); ++i)
    if (auto failed = check.run(site, batches, ways[i]);
        failed.code != ec::none)
      return failed;
  auto measured = measure_in_turns(ways, options.quick ? 0 : warm_up_rounds,
                                   options.rounds);
  if (!measured)
    return measured.failure();
  const auto& seconds = measured.value();
  const auto bytes = static_cast<double>(batches.size() * batches[0].bytes);
  for (std::size_t i = 2; i < ways.size(); ++i) {
    auto row = copy_row{};
    row.where_to = what.where_to;
    row.fragment_bytes = what.fragment_bytes;
    row.fragments = what.count;
    row.jobs = what.jobs;
    row.way = ways[i].name;
    row.by_one = quantiles_of(ratios(seconds[i], seconds[0]));
    row.by_each = quantiles_of(ratios(seconds[i], seconds[1]));
    row.rate = quantiles_of(rates(seconds[i], bytes));
    row.rate_of_one = quantiles_of(rates(seconds[0], bytes));
    row.rate_of_each = quantiles_of(rates(seconds[1], bytes));
    out.push_back(std::move(row));
  }
  return {};
}

} // namespace

error measure_copies(copy_site& site, const copy_options& options,
                     std::vector<copy_row>& out) {
  const auto cells = cells_of(options);
  if (cells.empty())
    return {ec::invalid_argument,
            "no batch is left to measure: all are larger than --batch, or have "
            "fewer fragments than jobs"};
  auto check = byte_check{options.batch_bytes};
  auto told = progress{"copies", cells.size()};
  for (const auto& what : cells) {
    if (interrupted())
      break;
    told.next(std::string{name_of(what.where_to)} + ", "
              + std::to_string(what.count) + " x "
              + size_text(what.fragment_bytes) + ", jobs "
              + std::to_string(what.jobs));
    if (auto failed = measure(site, check, what, options, out);
        failed.code != ec::none)
      return failed;
  }
  return {};
}

} // namespace kvtide::bench
