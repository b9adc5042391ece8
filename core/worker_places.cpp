// SPDX-License-Identifier: Apache-2.0

#include "core/worker_places.hpp"

#include "core/peer_address.hpp"

#include <algorithm>

namespace kvtide::core {

namespace {

using kind = worker_place::kind;

error invalid(std::string text) {
  return {ec::invalid_options, std::move(text)};
}

error fault_of_place(const worker_place& place, const std::string& name) {
  if (place.where < kind::here || place.where > kind::dialed)
    return invalid(name + ".where has a value that does not exist.");
  if (place.where != kind::dialed) {
    if (place.address.empty())
      return {};
    return invalid(name + ".address is \"" + place.address
                   + "\", but only a worker that is dialed has one.");
  }
  auto address = read_peer_address(place.address, name + ".address");
  if (!address)
    return address.failure();
  if (address.value().port == 0)
    return invalid(name + ".address is \"" + place.address
                   + "\": nobody can dial port 0.");
  return {};
}

} // namespace

bool is_here(const options& opts, rank_id rank) {
  return opts.workers.empty() || opts.workers[rank].where == kind::here;
}

bool any_elsewhere(const options& opts) {
  return std::any_of(opts.workers.begin(), opts.workers.end(),
                     [](const auto& x) { return x.where != kind::here; });
}

error fault_of_workers(const options& opts) {
  if (!opts.workers.empty() && opts.workers.size() != opts.ranks)
    return invalid("workers has " + std::to_string(opts.workers.size())
                   + " entries, but ranks is " + std::to_string(opts.ranks)
                   + "; name one place per rank, or none if all are here.");
  for (std::size_t at = 0; at < opts.workers.size(); ++at)
    if (auto fault = fault_of_place(opts.workers[at],
                                    "workers[" + std::to_string(at) + "]");
        fault.code != ec::none)
      return fault;
  if (!any_elsewhere(opts))
    return {};
  if (opts.host_bytes == 0)
    return invalid("host_bytes is 0, but workers names ranks of other "
                   "processes: without a cache nobody would answer them.");
  if (opts.network == nullptr)
    return invalid("workers names ranks of other processes, but network is "
                   "null; make one with make_network (component net).");
  return {};
}

error fault_of_hosted(const options& opts, const std::vector<rank_id>& hosted) {
  if (hosted.empty())
    return invalid("ranks is empty; name the ranks that live here.");
  auto sorted = hosted;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.back() >= opts.ranks)
    return invalid("ranks names rank " + std::to_string(sorted.back())
                   + ", but shared.ranks is " + std::to_string(opts.ranks)
                   + ".");
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return invalid("ranks names rank " + std::to_string(*twice) + " twice.");
  if (opts.host_bytes == 0)
    return invalid("shared.host_bytes is 0: without a cache an engine needs "
                   "no worker.");
  if (opts.network == nullptr)
    return invalid("shared.network is null; make one with make_network.");
  return {};
}

std::vector<std::string> dialed_addresses(const options& opts) {
  auto out = std::vector<std::string>{};
  for (const auto& x : opts.workers)
    if (x.where == kind::dialed
        && std::find(out.begin(), out.end(), x.address) == out.end())
      out.push_back(x.address);
  return out;
}

} // namespace kvtide::core
